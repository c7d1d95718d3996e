#!/usr/bin/env bash
# A real SLURM of one node for the tests: `cluster.sh start [none|database]`, `cluster.sh stop`. Needs root and Debian's packages, not systemd.
# Everything lives in $HOME_OF_CLUSTER, with ports and a munge key of its own. Only the files of /etc/slurm become links to it,
# because jobs look for them there; files of that name are set aside and come back with `stop`. A SLURM that runs here is left alone.
# The node says it has $CLUSTER_CPUS processors and one GPU; the GPU is only a name: jobs that ask for it run on the processor.
set -euo pipefail

HOME_OF_CLUSTER=${HOME_OF_CLUSTER:-/run/subspaces-slurm}
CPUS=${CLUSTER_CPUS:-4}
MEMORY=$(awk '/^MemTotal/ {print int($2 / 1024 * 0.9)}' /proc/meminfo)
NODE=$(hostname -s)
NAME=subspaces-tests
CTLD_PORT=26817 SLURMD_PORT=26818 DBD_PORT=26819 SQL_PORT=26820

fail() {
    echo "cluster.sh: $*" >&2
    exit 1
}

pid_of() { # of a daemon of ours that lives
    local file=$HOME_OF_CLUSTER/$1.pid
    # a dead process that nobody has collected, as happens in containers, does not count
    if [ -s "$file" ] && grep -qs '^State:.[^Z]' "/proc/$(cat "$file")/status"; then cat "$file"; fi
}

until_true() { # seconds, command
    local end=$((SECONDS + $1))
    shift
    while ((SECONDS < end)); do
        if "$@" >/dev/null 2>&1; then return 0; fi
        sleep 0.1
    done
    return 1
}

gone() { [ -z "$(pid_of "$1")" ]; }

stop() {
    if [ -n "$(pid_of slurmctld)" ]; then
        scancel --user=root 2>/dev/null || true
        until_true 10 bash -c '[ -z "$(squeue -h 2>/dev/null)" ]' || true
    fi
    local daemon pid
    for daemon in slurmd slurmctld slurmdbd mariadbd munged; do
        pid=$(pid_of $daemon)
        [ -z "$pid" ] || kill "$pid"
        until_true 20 gone $daemon || { kill -9 "$(pid_of $daemon)" 2>/dev/null || true; }
    done
    # without cgroups a process of a job can outlive it: those that carry our cluster's name
    for pid in $(grep -lzs "^SLURM_CLUSTER_NAME=$NAME\$" /proc/[0-9]*/environ | cut -d/ -f3); do
        kill -9 "$pid" 2>/dev/null || true
    done
    local name
    for name in slurm.conf gres.conf slurmdbd.conf; do
        if [ "$(readlink /etc/slurm/$name)" = "$HOME_OF_CLUSTER/$name" ]; then rm /etc/slurm/$name; fi
        if [ -e /etc/slurm/$name.aside ] && [ ! -e /etc/slurm/$name ]; then mv /etc/slurm/$name.aside /etc/slurm/$name; fi
    done
    rm -rf "$HOME_OF_CLUSTER" /dev/subspaces-gpu0
}

link_config() { # names of files
    mkdir -p /etc/slurm
    local name
    for name in "$@"; do
        if [ -e /etc/slurm/$name ]; then mv /etc/slurm/$name /etc/slurm/$name.aside; fi
        ln -s "$PWD/$name" /etc/slurm/$name
    done
}

install_missing() {
    local missing=() package
    for package in "$@"; do
        dpkg -s "$package" >/dev/null 2>&1 || missing+=("$package")
    done
    [ ${#missing[@]} -eq 0 ] && return
    local log
    log=$(mktemp)
    # packages start their daemons where they can; ours must not meet them
    if ! { apt-get update -qq && DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 \
        apt-get install -y -qq --no-install-recommends "${missing[@]}"; } >"$log" 2>&1; then
        tail -n 20 "$log" >&2
        fail "could not install ${missing[*]}"
    fi
    rm -f "$log"
}

start_munge() {
    (umask 077 && head -c 1024 /dev/urandom >munge.key)
    munged --socket=$PWD/munge.socket --key-file=$PWD/munge.key --pid-file=$PWD/munged.pid \
        --log-file=$PWD/munged.log --seed-file=$PWD/munge.seed
    until_true 10 munge --socket=$PWD/munge.socket -n || fail "munged does not answer: $(tail -n 3 munged.log)"
}

write_config() {
    [ -e /dev/subspaces-gpu0 ] || mknod -m 666 /dev/subspaces-gpu0 c 1 3
    echo "NodeName=$NODE Name=gpu File=/dev/subspaces-gpu0" >gres.conf
    cat >slurm.conf <<CONF
ClusterName=$NAME
SlurmctldHost=$NODE(127.0.0.1)
SlurmctldPort=$CTLD_PORT
SlurmdPort=$SLURMD_PORT
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=$PWD/munge.socket
CredType=cred/munge
StateSaveLocation=$PWD/state
SlurmdSpoolDir=$PWD/spool
SlurmctldPidFile=$PWD/slurmctld.pid
SlurmdPidFile=$PWD/slurmd.pid
SlurmctldLogFile=$PWD/slurmctld.log
SlurmdLogFile=$PWD/slurmd.log
# no cgroups in a container: processes are followed through /proc, and memory is counted when jobs are placed
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
SlurmdParameters=config_overrides
SchedulerParameters=sched_interval=2,batch_sched_delay=0
# what cannot run on any node is refused when it is submitted
EnforcePartLimits=ALL
ReturnToService=2
KillWait=1
MinJobAge=3600
GresTypes=gpu
NodeName=$NODE NodeAddr=127.0.0.1 CPUs=$CPUS RealMemory=$MEMORY Gres=gpu:1 State=UNKNOWN
PartitionName=short Nodes=$NODE Default=YES MaxTime=UNLIMITED State=UP
PartitionName=gpu Nodes=$NODE MaxTime=UNLIMITED State=UP
CONF
    if [ "$1" = database ]; then
        cat >>slurm.conf <<CONF
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=127.0.0.1
AccountingStoragePort=$DBD_PORT
AccountingStoragePass=$PWD/munge.socket
AccountingStorageTRES=gres/gpu
AccountingStorageEnforce=associations
JobAcctGatherType=jobacct_gather/linux
CONF
    else
        echo "AccountingStorageType=accounting_storage/none" >>slurm.conf
    fi
}

start_database() {
    local password
    password=$(head -c 16 /dev/urandom | od -An -tx1 | tr -d ' \n')
    install -d -o mysql -g mysql -m 700 sql
    mariadb-install-db --no-defaults --user=mysql --datadir=$PWD/sql --skip-test-db >sql.log 2>&1 || fail "$(tail -n 5 sql.log)"
    install -o mysql -m 600 /dev/stdin sql/init.sql <<SQL
CREATE DATABASE IF NOT EXISTS slurm_acct_db;
CREATE USER IF NOT EXISTS 'slurm'@'%' IDENTIFIED BY '$password';
GRANT ALL ON slurm_acct_db.* TO 'slurm'@'%';
SQL
    setsid mariadbd --no-defaults --user=mysql --datadir=$PWD/sql --socket=$PWD/sql/socket --pid-file=$PWD/sql/pid --skip-name-resolve \
        --bind-address=127.0.0.1 --port=$SQL_PORT --init-file=$PWD/sql/init.sql >>sql.log 2>&1 </dev/null &
    echo $! >mariadbd.pid
    until_true 30 mariadb-admin --no-defaults --socket=$PWD/sql/socket ping || fail "the database does not answer: $(tail -n 5 sql.log)"
    install -m 600 /dev/stdin slurmdbd.conf <<CONF
AuthType=auth/munge
AuthInfo=socket=$PWD/munge.socket
DbdHost=localhost
DbdAddr=127.0.0.1
DbdPort=$DBD_PORT
SlurmUser=root
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StoragePort=$SQL_PORT
StorageUser=slurm
StoragePass=$password
StorageLoc=slurm_acct_db
PidFile=$PWD/slurmdbd.pid
LogFile=$PWD/slurmdbd.log
CONF
    link_config slurmdbd.conf
    slurmdbd
    until_true 30 sacctmgr -n show cluster || fail "slurmdbd does not answer: $(tail -n 5 slurmdbd.log)"
    sacctmgr -i -Q add cluster $NAME >/dev/null
    sacctmgr -i -Q add account lab Description=lab Organization=lab >/dev/null
    sacctmgr -i -Q add user root Account=lab >/dev/null
}

idle() { [ "$(sinfo -h -p short -o %T)" = idle ]; }

start() {
    [ "$(id -u)" = 0 ] || fail "SLURM's daemons need root here"
    command -v apt-get >/dev/null || fail "SLURM is installed with apt-get, which this machine does not have"
    local packages=(slurmctld slurmd slurm-client munge)
    [ "$1" = database ] && packages+=(slurmdbd mariadb-server)
    install_missing "${packages[@]}"
    stop
    if [ -e /etc/slurm/slurm.conf ] && timeout 20 scontrol ping 2>/dev/null | grep -q 'is UP'; then
        fail "a SLURM that is not ours runs on this machine"
    fi
    mkdir -p -m 755 "$HOME_OF_CLUSTER"
    cd "$HOME_OF_CLUSTER"
    mkdir -p state spool
    start_munge
    write_config "$1"
    link_config slurm.conf gres.conf
    [ "$1" = database ] && start_database
    slurmctld
    slurmd
    until_true 30 idle || fail "the node is not idle: $(sinfo -h -o '%T %E'); $(tail -n 5 slurmctld.log slurmd.log)"
    sinfo -N -o '%N %T %c %m %G'
}

case "${1:-}" in
start) start "${2:-none}" ;;
stop) stop ;;
*) fail "use: cluster.sh start [none|database], or cluster.sh stop" ;;
esac
