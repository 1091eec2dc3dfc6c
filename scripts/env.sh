# env.sh - read by the other scripts (". scripts/env.sh", from the repository's root): what has to
# be set so that they work the same for a user, for root in a container, and with no environment.

export LC_ALL=C
PATH=${PATH:-/usr/bin:/bin}:/usr/sbin:/sbin:/usr/games
export PATH

# Open MPI: do not spin while waiting (ranks may share cores), no banners around our own line, any
# number of ranks, none bound; root has to say that it means it. OMPI_ is read by version 4, PRTE_
# by version 5, which has other options (and always its banners); MPICH does all this by itself.
export OMPI_MCA_mpi_yield_when_idle=1 OMPI_MCA_orte_execute_quiet=1
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_hwloc_base_binding_policy=none
export PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe
export PRTE_MCA_hwloc_default_binding_policy=none
if [ "$(id -u)" = 0 ]; then
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
fi

BUILD=${DSV3_BUILD:-build}
CORES=$(nproc)
MAKE="make -j$CORES BUILD=$BUILD"
