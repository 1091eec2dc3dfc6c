/* A dead run's directory is taken over, that of one that is alive on any machine is not; who has
 * lost it ends. */
// TEST ranks=1 timeout=60
#include "owner_rig.h"

/* The card as if it came from another machine. */
static void move_away(void)
{
    char text[640] = "";
    const int fd = open(path, O_RDWR);
    EXPECT(pread(fd, text, sizeof text - 1, 0) > 0, "no card");
    const char *machine = strstr(text, "machine ");
    EXPECT(machine && pwrite(fd, "?", 1, machine + 8 - text) == 1, "no machine in %s", text);
    close(fd);
}

static void check_other_machines(void)
{
    struct fault fault = {0};
    int said;
    const char *dir = new_dir("other");
    pid_t child = spawn(dir, 1, &said);
    EXPECT(word_of(said) == '+', "not claimed");
    move_away();
    EXPECT(owner_try_look(dir, 20, &fault) && strstr(fault.why, "at work"), "alive: %s", fault.why);
    end(child, SIGKILL);
    EXPECT(!owner_try_look(dir, 2.5, &fault), "dead: %s", fault.why);
    child = spawn(dir, 0.2, &said);
    EXPECT(word_of(said) == '+', "a dead one of another machine keeps it");
    end(child, SIGKILL);
    close(open(path, O_WRONLY | O_TRUNC)); /* killed before its first word */
    child = spawn(dir, 0.2, &said);
    EXPECT(word_of(said) == '+', "nobody has it");
    end(child, SIGKILL);
}

static void check_lost(void)
{
    struct fault fault = {0};
    struct stat st;
    int said, said_b;
    char other[PATH_BYTES], to[PATH_BYTES];
    const pid_t b = spawn(new_dir("b"), 1, &said_b);
    path_print(other, "%s", path);
    const pid_t a = spawn(new_dir("a"), 1, &said);
    path_print(to, "%s", path);
    EXPECT(word_of(said) == '+' && word_of(said_b) == '+', "not claimed");
    unlink(to);
    for (int i = 0; i < 100 && stat(to, &st) != 0; i++) pause_ms(100);
    EXPECT(stat(to, &st) == 0, "one that was removed is not made again");
    EXPECT(rename(other, to) == 0, "%s", strerror(errno));
    const int code = end(a, 0);
    EXPECT(code == CODE_IO, "exit code %d of one that was replaced", code);
    end(b, SIGKILL);
    struct owner *o = owner_try_claim(new_dir("c"), 1, &fault);
    owner_check(o);
    owner_free(o);
    EXPECT(o && stat(path, &st) != 0, "it is not given back");
}

int main(void)
{
    check_other_machines();
    check_lost();
    return test_end();
}
