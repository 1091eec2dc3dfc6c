/* Of several newcomers at once one gets run.dir, whoever of them is killed. */
// TEST ranks=1 timeout=60
#include "owner_rig.h"

enum { ROUNDS = 24, NEWCOMERS = 4 };

/* One round: newcomers at once, after a dead one or after nobody; one of them is killed somewhere.
 * Then one more, which gets it when nobody has it. Exit code 0: all was right. */
static int race(int round)
{
    char name[32];
    pid_t child[NEWCOMERS + 1];
    int said[NEWCOMERS + 1], n_have = 0;
    snprintf(name, sizeof name, "race-%d", round);
    const char *dir = new_dir(name);
    srand((unsigned)round);
    if (round % 3) {
        child[0] = spawn(dir, 20, &said[0]);
        if (word_of(said[0]) != '+') return 1;
        end(child[0], SIGKILL);
    }
    for (int i = 0; i < NEWCOMERS; i++) child[i] = spawn(dir, 20, &said[i]);
    pause_ms(rand() % 4000 / 1000.0);
    const int killed = rand() % NEWCOMERS;
    kill(child[killed], SIGKILL);
    for (int i = 0; i < NEWCOMERS; i++) n_have += word_of(said[i]) == '+' && i != killed;
    if (n_have > 1) return 2;
    child[NEWCOMERS] = spawn(dir, 20, &said[NEWCOMERS]);
    const bool last = word_of(said[NEWCOMERS]) == '+';
    for (int i = 0; i <= NEWCOMERS; i++) end(child[i], SIGKILL);
    return n_have + last == 1 ? 0 : 3;
}

int main(void)
{
    pid_t round[ROUNDS];
    for (int i = 0; i < ROUNDS; i++)
        if ((round[i] = fork()) == 0) _exit(race(i));
    for (int i = 0; i < ROUNDS; i++) {
        const int code = end(round[i], 0);
        EXPECT(code == 0, "round %d: %s", i, code == 2 ? "two have it" : "nobody has it, or all");
    }
    return test_end();
}
