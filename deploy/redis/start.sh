#!/bin/sh
# Start the Valkey or the sentinel of a pod: `start.sh valkey` or `start.sh sentinel`. In the environment: OWN, the name of
# this pod; PEERS, the names of all, the first of which is the master of a new group; PASSWORD_FILE; DATA, a directory.
set -eu

password=$(cat "$PASSWORD_FILE")
port=${VALKEY_PORT:-6379}
sentinel_port=${SENTINEL_PORT:-26379}

# The master that a sentinel of another pod names, else the first pod.
master() {
    for peer in $PEERS; do
        [ "$peer" != "$OWN" ] || continue
        found=$(REDISCLI_AUTH=$password timeout 3 valkey-cli -h "$peer" -p "$sentinel_port" --no-auth-warning \
            sentinel get-master-addr-by-name robots 2>/dev/null | head -n 1) || found=
        # An error message has spaces.
        case $found in *" "* | "") ;; *) echo "$found"; return ;; esac
    done
    echo "${PEERS%% *}"
}

case $1 in
valkey)
    # The password is in a file, not among the arguments, which every process in the pod could read.
    umask 077
    {
        echo "bind ${BIND:-* -::*}"
        echo "port $port"
        echo "dir $DATA"
        echo "requirepass $password"
        echo "primaryauth $password"
        echo "replica-announce-ip $OWN"
        echo "appendonly yes"
        echo "maxmemory ${MAXMEMORY:-1gb}"
        echo "maxmemory-policy volatile-lru"
        # A master that has lost its replicas takes no writes, which a failover would drop.
        echo "min-replicas-to-write 1"
        echo "min-replicas-max-lag 10"
        master=$(master)
        [ "$master" = "$OWN" ] || echo "replicaof $master $port"
    } >"$DATA/valkey.conf"
    exec valkey-server "$DATA/valkey.conf"
    ;;
sentinel)
    # Sentinels write what they know to the file.
    umask 077
    if [ ! -s "$DATA/sentinel.conf" ]; then
        {
            echo "bind ${BIND:-* -::*}"
            echo "port $sentinel_port"
            echo "dir $DATA"
            echo "requirepass $password"
            echo "sentinel sentinel-pass $password"
            echo "sentinel resolve-hostnames yes"
            echo "sentinel announce-hostnames yes"
            echo "sentinel announce-ip $OWN"
            echo "sentinel monitor robots $(master) $port 2"
            echo "sentinel auth-pass robots $password"
            echo "sentinel down-after-milliseconds robots 5000"
            echo "sentinel failover-timeout robots 30000"
        } >"$DATA/sentinel.conf.new"
        mv "$DATA/sentinel.conf.new" "$DATA/sentinel.conf"
    fi
    exec valkey-server "$DATA/sentinel.conf" --sentinel
    ;;
esac
