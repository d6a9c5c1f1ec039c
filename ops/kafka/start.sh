#!/usr/bin/env bash
# Run one Apache Kafka node (KRaft) on loopback, without Docker. Needs Java 17+ and, once, Maven.
#
#     ops/kafka/start.sh DATA_DIR [PORT]        PORT 9092, controller on PORT+1
#     ops/kafka/start.sh --fetch                only fetch Kafka
#
# Data stays in DATA_DIR: starting again on it goes on where it stopped. Kafka itself is fetched
# into .kafka/ at the top of the checkout and kept there.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
home=$(cd "$here/../.." && pwd)/.kafka
version=$(sed -n 's:.*<kafka.version>\(.*\)</kafka.version>.*:\1:p' "$here/pom.xml")
libs=$home/$version

if [ ! -e "$libs/.complete" ]; then
    command -v mvn >/dev/null || { echo 'error: Maven is needed once, to fetch Kafka' >&2; exit 1; }
    echo "fetching Apache Kafka $version" >&2
    rm -rf "$libs"
    mkdir -p "$libs"
    mvn -q -B -f "$here/pom.xml" dependency:copy-dependencies \
        -DincludeScope=runtime -DoutputDirectory="$libs" >&2
    touch "$libs/.complete"
fi
[ "${1:-}" = --fetch ] && exit 0

data=${1:?usage: start.sh DATA_DIR [PORT]}
port=${2:-9092}
mkdir -p "$data"
data=$(cd "$data" && pwd)

cat >"$data/server.properties" <<EOF
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:$((port + 1))
listeners=PLAINTEXT://127.0.0.1:$port,CONTROLLER://127.0.0.1:$((port + 1))
advertised.listeners=PLAINTEXT://127.0.0.1:$port
controller.listener.names=CONTROLLER
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs=$data/log
# The application creates its topics, with the partitions it needs.
auto.create.topics.enable=false
offsets.topic.replication.factor=1
offsets.topic.num.partitions=4
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
# A single worker need not wait for others to join its group.
group.initial.rebalance.delay.ms=0
group.min.session.timeout.ms=1000
EOF

cat >"$data/log4j2.properties" <<EOF
status=error
appender.stderr.type=Console
appender.stderr.name=stderr
appender.stderr.target=SYSTEM_ERR
appender.stderr.layout.type=PatternLayout
appender.stderr.layout.pattern=%d{ISO8601} %p %m (%c)%n
rootLogger.level=warn
rootLogger.appenderRef.stderr.ref=stderr
EOF

java=(java -Xms256m -Xmx512m -XX:+UseSerialGC -XX:TieredStopAtLevel=1
    "-Dlog4j2.configurationFile=$data/log4j2.properties" -cp "$libs/*")
if [ ! -e "$data/log/meta.properties" ]; then
    "${java[@]}" kafka.tools.StorageTool format --cluster-id Y2l0ZWZsb3cta2Fma2EtMQ \
        --config "$data/server.properties" >&2
fi
exec "${java[@]}" kafka.Kafka "$data/server.properties"
