/* Import and export of a model that is much larger than the memory they take. */
// TEST timeout=60
/*
 * 101 MB of weights are two matrices of zeros with a few others in them, in a file with holes.
 * Taking 4 GB instead was measured to need the same memory: 23 MB and 15 MB.
 */
#include "tests/test.h"

#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>

enum { VOCAB = 1 << 16, D = 192, MODEL_MB = 101, MOST_MB = 48, SET_EVERY = 999983 };

static const char config[] =
    "{\"model_type\": \"deepseek_v3\", \"vocab_size\": 65536, \"hidden_size\": 192,"
    " \"num_hidden_layers\": 1, \"first_k_dense_replace\": 1, \"intermediate_size\": 8,"
    " \"moe_intermediate_size\": 8, \"num_attention_heads\": 2, \"q_lora_rank\": null,"
    " \"kv_lora_rank\": 8, \"qk_nope_head_dim\": 8, \"qk_rope_head_dim\": 8, \"v_head_dim\": 8,"
    " \"n_routed_experts\": 4, \"n_group\": 1, \"topk_group\": 1, \"n_shared_experts\": 1, "
    "\"num_experts_per_tok\": 2,"
    " \"routed_scaling_factor\": 1.0, \"max_position_embeddings\": 64}";

#define LAYER "model.layers.0."
static const struct {
    const char *name;
    int rows, columns;
} tensors[] = {{"lm_head", VOCAB, D},
               {"model.embed_tokens", VOCAB, D},
               {"model.norm", D, 0},
               {LAYER "input_layernorm", D, 0},
               {LAYER "post_attention_layernorm", D, 0},
               {LAYER "self_attn.q_proj", 32, D},
               {LAYER "self_attn.kv_a_proj_with_mqa", 16, D},
               {LAYER "self_attn.kv_a_layernorm", 8, 0},
               {LAYER "self_attn.kv_b_proj", 32, 8},
               {LAYER "self_attn.o_proj", D, 16},
               {LAYER "mlp.gate_proj", 8, D},
               {LAYER "mlp.up_proj", 8, D},
               {LAYER "mlp.down_proj", D, 8}};

static void write_at(int fd, const void *from, size_t n, int64_t at)
{
    EXPECT(pwrite(fd, from, n, at) == (ssize_t)n, "cannot write %zu bytes", n);
}

static void make_input(const char *dir)
{
    char path[700], header[4096] = "{";
    int64_t all = 0;
    snprintf(path, sizeof path, "mkdir '%s'", dir);
    EXPECT(system(path) == 0, "%s", path);
    snprintf(path, sizeof path, "%s/config.json", dir);
    int fd = open(path, O_WRONLY | O_CREAT, 0600);
    write_at(fd, config, sizeof config - 1, 0);
    close(fd);
    uint64_t n = 1;
    for (size_t i = 0; i < sizeof tensors / sizeof *tensors; i++) {
        const int64_t bytes = 4 * tensors[i].rows * (tensors[i].columns ? tensors[i].columns : 1);
        char shape[48] = "";
        if (tensors[i].columns) snprintf(shape, sizeof shape, ",%d", tensors[i].columns);
        n += (uint64_t)sprintf(header + n,
                               "%s\"%s.weight\":{\"dtype\":\"F32\",\"shape\":[%d%s],"
                               "\"data_offsets\":[%ld,%ld]}",
                               i ? "," : "", tensors[i].name, tensors[i].rows, shape, (long)all,
                               (long)(all + bytes));
        all += bytes;
    }
    header[n++] = '}';
    snprintf(path, sizeof path, "%s/model.safetensors", dir);
    fd = open(path, O_WRONLY | O_CREAT, 0600);
    write_at(fd, &n, 8, 0);
    write_at(fd, header, n, 8);
    EXPECT(ftruncate(fd, 8 + (int64_t)n + all) == 0, "cannot enlarge %s", path);
    for (int64_t i = 0; i < all / 4; i += SET_EVERY) {
        const float x = (float)i;
        write_at(fd, &x, 4, 8 + (int64_t)n + 4 * i);
    }
    close(fd);
}

/* Its largest resident memory is far below the model's size. dtype: of an export, or NULL. */
static void run(const char *command, const char *from, const char *to, const char *dtype)
{
    char program[600];
    int status = -1;
    struct rusage usage = {0};
    snprintf(program, sizeof program, "%s/dsv3-ckpt", getenv("DSV3_BUILD"));
    const pid_t pid = fork();
    if (pid == 0) {
        execl(program, program, command, from, to, dtype, (char *)NULL);
        _exit(127);
    }
    EXPECT(pid > 0 && wait4(pid, &status, 0, &usage) == pid && status == 0, "%s: status %d",
           command, status);
    const double mb = (double)usage.ru_maxrss * 1024e-6;
    printf("%s: %.1f MB for a model of %d MB\n", command, mb, MODEL_MB);
    EXPECT(TEST_SANITIZED || mb < MOST_MB, "%s takes %.1f MB of memory", command, mb);
}

int main(void)
{
    char in[600], out[600], latest[640], hf[600], command[2000];
    snprintf(in, sizeof in, "%s/in", test_tmpdir());
    snprintf(out, sizeof out, "%s/out", test_tmpdir());
    snprintf(latest, sizeof latest, "%s/latest", out);
    snprintf(hf, sizeof hf, "%s/hf", test_tmpdir());
    make_input(in);
    run("import", in, out, NULL);
    run("export", latest, hf, "--dtype=f32");
    snprintf(command, sizeof command,
             "set -e; tests/safetensors_edit list '%s'/*.safetensors >'%s/a'; "
             "tests/safetensors_edit list '%s'/*.safetensors >'%s/b'; cmp '%s/a' '%s/b'",
             in, test_tmpdir(), hf, test_tmpdir(), test_tmpdir(), test_tmpdir());
    EXPECT(system(command) == 0, "other values came out");
    return test_end();
}
