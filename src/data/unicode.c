/* unicode.c - names of categories, white space, UTF-8; see unicode.h. */
#include "data/unicode.h"

static const char names[N_UNICODE_CATEGORIES][3] = {
    "Cn", "Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Mc", "Me", "Nd", "Nl", "No", "Pc", "Pd", "Ps",
    "Pe", "Pi", "Pf", "Po", "Sm", "Sc", "Sk", "So", "Zs", "Zl", "Zp", "Cc", "Cf", "Co"};

const uint32_t unicode_spaces[][2] = {
    {0x9, 0xd},       {0x20, 0x20},     {0x85, 0x85},     {0xa0, 0xa0},     {0x1680, 0x1680},
    {0x2000, 0x200a}, {0x2028, 0x2029}, {0x202f, 0x202f}, {0x205f, 0x205f}, {0x3000, 0x3000}};
const int n_unicode_spaces = (int)(sizeof unicode_spaces / sizeof *unicode_spaces);

uint32_t unicode_categories(const char *name, size_t n)
{
    uint32_t bits = 0;
    for (int c = 0; c < N_UNICODE_CATEGORIES; c++)
        if (n >= 1 && n <= 2 && names[c][0] == name[0] && (n == 1 || names[c][1] == name[1]))
            bits |= UINT32_C(1) << c;
    return bits;
}

uint32_t unicode_decode(const char *text, int64_t n, int *bytes)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    const unsigned char *u = (const unsigned char *)text;
    const int want = u[0] < 0x80       ? 1
                     : u[0] >> 5 == 6  ? 2
                     : u[0] >> 4 == 14 ? 3
                     : u[0] >> 3 == 30 ? 4
                                       : 0;

    *bytes = 1;
    if (want == 1) return u[0];
    if (want == 0 || want > n) return UNICODE_CODE_POINTS;
    uint32_t c = u[0] & (0x7fu >> want);
    for (int i = 1; i < want; i++) {
        if (u[i] >> 6 != 2) return UNICODE_CODE_POINTS;
        c = c << 6 | (u[i] & 0x3fu);
    }
    if (c < least[want] || c >= UNICODE_CODE_POINTS || (c >= 0xd800 && c < 0xe000))
        return UNICODE_CODE_POINTS;
    *bytes = want;
    return c;
}

int unicode_encode(uint32_t c, char *text)
{
    if (c < 0x80) {
        text[0] = (char)c;
        return 1;
    }
    const int n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (int i = n - 1; i > 0; i--, c >>= 6) text[i] = (char)(0x80 | (c & 0x3f));
    text[0] = (char)((0xf00 >> n) | c);
    return n;
}
