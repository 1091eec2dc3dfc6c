# env.sh - read by the other scripts (". scripts/env.sh", from the repository's root): what has to
# be set so that they work the same for a user, for root in a container, and with no environment.

export LC_ALL=C
PATH=${PATH:-/usr/bin:/bin}:/usr/sbin:/sbin:/usr/games
export PATH

# Open MPI: do not spin while waiting (ranks may share cores); root has to say that it means it.
export OMPI_MCA_mpi_yield_when_idle=1
if [ "$(id -u)" = 0 ]; then
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
fi
MPIRUN='mpirun --quiet --oversubscribe --bind-to none'

BUILD=${DSV3_BUILD:-build}
CORES=$(nproc)
MAKE="make -j$CORES BUILD=$BUILD"
