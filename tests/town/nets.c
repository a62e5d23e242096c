#include "nets.h"

#include "support/crew.h"

#include "support/theme.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>

static int spaces[NETS_MACHINES + 1];

static int this_space(void)
{
    int fd = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);

    assert_true(fd >= 0);
    return fd;
}

const char *nets_address(unsigned machine)
{
    static const char *const addresses[] = {"10.99.0.100", "10.99.0.1", "10.99.0.2", "10.99.0.3"};

    return addresses[machine];
}

static const char *device(unsigned machine)
{
    return machine == NETS_HERE ? "switch" : "eth0";
}

void nets_enter(unsigned machine)
{
    assert_int_equal(setns(spaces[machine], CLONE_NEWNET), 0);
}

/* Where packets for somebody go is written down by hand, so nobody asks for it. */
static void knows(unsigned from, unsigned to, const char *prefix)
{
    nets_enter(from);
    crew_shell("ip neigh replace %s lladdr %s:%02x dev %s nud permanent", nets_address(to), prefix,
               to, device(from));
    nets_enter(NETS_HERE);
}

static void add_machine(unsigned machine)
{
    assert_int_equal(unshare(CLONE_NEWNET), 0);
    spaces[machine] = this_space();
    crew_shell("ip link set lo up");
    nets_enter(NETS_HERE);
    crew_shell(
        "ip link add v%u type veth peer name p%u && ip link set p%u netns /proc/%ld/fd/%d && "
        "ip link set v%u master switch && ip link set v%u up",
        machine, machine, machine, (long)getpid(), spaces[machine], machine, machine);
    nets_enter(machine);
    crew_shell("ip link set p%u name eth0 && ip link set eth0 address 02:00:00:00:00:%02x && "
               "ip address add %s/24 dev eth0 && ip link set eth0 up",
               machine, machine, nets_address(machine));
    nets_enter(NETS_HERE);
}

int nets_open(void)
{
    if (crew_network() != 0)
        return -1;
    spaces[NETS_HERE] = this_space();
    crew_shell("ip link set lo up && ip link add switch type bridge");
    crew_shell("ip link set switch address 02:00:00:00:00:00 && ip address add %s/24 dev switch && "
               "ip link set switch up",
               nets_address(NETS_HERE));
    for (unsigned i = 1; i <= NETS_MACHINES; i++)
        add_machine(i);
    nets_heal();
    return 0;
}

/* To an address of the switch that nobody has. */
void nets_lose(unsigned from, unsigned to)
{
    knows(from, to, "02:00:00:00:ff");
}

void nets_cut(unsigned machine)
{
    for (unsigned i = 0; i <= NETS_MACHINES; i++)
        if (i != machine) {
            nets_lose(i, machine);
            nets_lose(machine, i);
        }
}

void nets_heal(void)
{
    for (unsigned i = 0; i <= NETS_MACHINES; i++)
        for (unsigned j = 0; j <= NETS_MACHINES; j++)
            if (i != j)
                knows(i, j, "02:00:00:00:00");
}
