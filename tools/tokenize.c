/*
 * tokenize.c - dsv3-tokenize: text to token shards, checking shards, and shards back to text. It
 * runs before training; dsv3 reads what it writes. Its parts are in tools/tokenize/.
 */
#include "tokenize/tokenize.h"
#include "base/std_files.h"

#include "base/version.h"

#include <stdio.h>

static const char usage[] =
    "usage: dsv3-tokenize --out NAME.tok.zst [options] [PATH...]\n"
    "       dsv3-tokenize --verify SHARD...\n"
    "       dsv3-tokenize --decode [--tokenizer FILE [--max-vocab N]] SHARD...\n"
    "       dsv3-tokenize --help | --version\n"
    "\n"
    "Makes a shard of tokens from text files, directories (all files below, in bytewise order\n"
    "of their paths), patterns in quotes ('texts/*.txt') or standard input (-). What gzip or zstd\n"
    "has packed is unpacked. Each file is a document. Without --tokenizer the ids are bytes,\n"
    "0 .. 255, and 256 after each document.\n"
    "\n"
    "  --tokenizer FILE       a Hugging Face tokenizer.json, byte-level BPE\n"
    "  --max-vocab N          only its tokens, merges and added tokens with ids below N\n"
    "  --eod TOKEN            the added token after each document, none: none; by default\n"
    "                         <｜end▁of▁sentence｜>, <|endoftext|>, <|end_of_text|> or </s>\n"
    "  --bos TOKEN            the added token before each document: none\n"
    "  --separator LINE       a line that equals LINE ends a document, and is left out\n"
    "  --json-key KEY         each line is a JSON object, the text at KEY a document\n"
    "  --skip-bad-lines       leave out lines that are not, and count them\n"
    "  --any-bytes            accept any bytes: otherwise a NUL, or more than 1 byte in 100\n"
    "                         that is not UTF-8, is an error\n"
    "  --heldout FILE         the last part of each file goes to this shard\n"
    "  --heldout-fraction X   how much of it: 0.05; cut between two documents, or after a line in\n"
    "                         long ones; of many short files some are held out as a whole\n"
    "  --vocab N              vocabulary to declare: the tokenizer's; 512 for bytes\n"
    "  --shard-tokens N       shards of N tokens, NAME-00000.tok.zst, NAME-00001.tok.zst, ...\n"
    "  --level N              of zstd, 1 .. 22: 3\n"
    "  --force                replace shards of that name\n"
    "  --verify               read and check everything in the shards given, print counts\n"
    "  --format F             of shards to read: native, megatron, llmc, datatrove, npy, u16,\n"
    "                         u32; recognised by name and contents\n"
    "  --decode               print the text of the shards given; with --separator LINE such a\n"
    "                         line instead of each --eod token\n"
    "\n"
    "A SHARD is a file, a directory of them, or Megatron's NAME of NAME.bin and NAME.idx.\n";

int main(int argc, char **argv)
{
    std_files_open();
    struct options o;
    if (options_parse(&o, argc, argv) != 0) return CODE_USAGE;
    if (o.help) {
        fputs(usage, stdout);
        return output_end();
    }
    if (o.version) return version_print("dsv3-tokenize");
    const int code = o.verify ? verify_shards(&o) : o.decode ? decode_shards(&o) : write_shards(&o);
    return code == CODE_DONE ? (int)output_end() : code;
}
