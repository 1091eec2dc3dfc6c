# lib_slurm.sh - for tests below a real Slurm (". tests/lib_slurm.sh"): one machine that is
# controller and node. All its files lie in one directory, its sockets on the loopback interface
# only, and when the test ends in any way all of it is stopped and removed.
slurm_need() {
    for program in munged slurmctld slurmd sbatch srun scontrol; do
        command -v $program >/dev/null && continue
        echo "skipped: no $program (slurm-wlm, munge)"
        exit 77
    done
    [ "$(id -u)" = 0 ] || { echo "skipped: not root, whom slurmd needs"; exit 77; }
}

# Short, as the path of a socket has little room.
slurm=
slurm_pids=

# The delay of a requeued job is the life of its credential, so that is short (cred_expire).
slurm_configure() {
    ports=$(perl -MIO::Socket::INET -e '
        my @s = map { IO::Socket::INET->new(Listen => 1, LocalAddr => "127.0.0.1") } 1, 2;
        print join " ", map { $_->sockport } @s')
    host=$(hostname -s)
    cat >"$slurm/slurm.conf" <<CONF
ClusterName=test
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=${ports% *}
SlurmdPort=${ports#* }
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$slurm/munge.socket,cred_expire=5
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
StateSaveLocation=$slurm/state
SlurmdSpoolDir=$slurm/spool
SlurmctldPidFile=$slurm/slurmctld.pid
SlurmdPidFile=$slurm/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SwitchType=switch/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType=sched/builtin
SchedulerParameters=sched_interval=1,batch_sched_delay=0
SlurmdParameters=config_overrides
ReturnToService=2
KillWait=5
NodeName=$host NodeAddr=127.0.0.1 CPUs=4 State=UNKNOWN
PartitionName=all Nodes=$host Default=YES MaxTime=INFINITE State=UP
CONF
}

# slurm_daemon NAME COMMAND ...
slurm_daemon() {
    name=$1
    shift
    "$@" >"$slurm/$name.out" 2>&1 </dev/null &
    slurm_pids="$! $slurm_pids" # the last is stopped first
}

slurm_start() {
    slurm=$(mktemp -d /tmp/dsv3-slurm.XXXXXX)
    trap slurm_stop EXIT
    trap 'exit 1' HUP INT TERM
    mkdir "$slurm/state" "$slurm/spool"
    slurm_configure
    export SLURM_CONF="$slurm/slurm.conf"
    (umask 077 && head -c 1024 /dev/urandom >"$slurm/munge.key")
    slurm_daemon munged munged --foreground --force --key-file="$slurm/munge.key" \
        --socket="$slurm/munge.socket" --pid-file="$slurm/munge.pid" \
        --seed-file="$slurm/munge.seed"
    slurm_until 10 'munged' [ -S "$slurm/munge.socket" ]
    slurm_daemon slurmctld slurmctld -D -f "$SLURM_CONF"
    slurm_daemon slurmd slurmd -D -f "$SLURM_CONF" -N "$host"
    slurm_until 20 'an idle node' slurm_idle
}
slurm_idle() {
    sinfo -h -o %t 2>/dev/null | grep -qx idle
}

# slurm_until SECONDS WHAT COMMAND ...: wait until the command succeeds.
slurm_until() {
    tries=$(($1 * 5 * ${DSV3_TIMEOUT_SCALE:-1})) what=$2
    shift 2
    until "$@"; do
        tries=$((tries - 1))
        [ $tries -gt 0 ] || { slurm_log; fail "waiting for $what took too long"; }
        sleep 0.2
    done
}

slurm_log() {
    tail -n 20 "$slurm"/*.out >&2
}

# The test's exit code stays. Jobs first: their processes are no children of the daemons.
slurm_stop() {
    code=$?
    trap - EXIT
    scancel --signal=KILL --full --user=root 2>/dev/null || :
    scancel --user=root 2>/dev/null || :
    for _ in 1 2 3 4 5 6 7 8 9 10; do
        [ -n "$(squeue -h 2>/dev/null)" ] || break
        sleep 0.5
    done
    for pid in $slurm_pids; do
        kill "$pid" 2>/dev/null || continue
        ( sleep 5; kill -KILL "$pid" 2>/dev/null ) &
        killer=$!
        wait "$pid" 2>/dev/null || :
        kill $killer 2>/dev/null || :
    done
    rm -rf "$slurm"
    exit $code
}
