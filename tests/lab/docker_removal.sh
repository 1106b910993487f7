# In a container of the lab hosts' file system with a dockerd of its own: an image of ours on a base that was pulled for
# it, a build and a container of somebody else's, and layer images taken back. Prints sections, each after `== name`.
export PYTHONDONTWRITEBYTECODE=1
for each in systemctl journalctl nvidia-smi; do printf '#!/bin/sh\nexit 0\n' > /usr/bin/$each; chmod 755 /usr/bin/$each; done
mkdir /tmp/docker
dockerd --data-root /tmp/docker --iptables=false --bridge=none > /tmp/dockerd.log 2>&1 &
for _ in $(seq 1 120); do docker info > /dev/null 2>&1 && break; sleep 0.5; done
mkdir -p /made/base /made/ours /made/theirs /var/lib/tinderbox/images
cd /made
for each in base ours theirs; do echo $each > $each/file; done
printf 'FROM scratch\nCOPY file /base\n' > base/Dockerfile
printf 'FROM registry.lab/base:1\nCOPY file /ours\n' > ours/Dockerfile
printf 'FROM scratch\nCOPY file /theirs\n' > theirs/Dockerfile
DOCKER_BUILDKIT=0 docker build -q -t registry.lab/base:1 base > /dev/null
cp -r /programs /run/copy
python3 - <<'P'
import subprocess, sys
sys.path.insert(0, "/run/copy")
import docker_cli
from brought_images import note_image, noted_build
note_image("registry.lab/base:1", docker_cli.inspect("registry.lab/base:1")["Id"])
with noted_build():
    build = "DOCKER_BUILDKIT=1 docker build -q --network none -t tinderbox/x:0123456789ab ours > /dev/null"
    subprocess.run(build, shell=True, check=True)
P
# Longer than what a record may be off from the build that it is of.
sleep 6
DOCKER_BUILDKIT=1 docker build -q --network none -t mine:1 theirs > /dev/null
docker create --name mine --network none tinderbox/x:0123456789ab /nothing > /dev/null
run() { python3 /run/copy/remove_layers.py "$@" 2>&1; echo "status $?"; }
images() { docker image ls --format '{{.Repository}}:{{.Tag}}' | sort; }
cached() { docker system df --format '{{.Type}} {{.TotalCount}}' | grep Build; }
echo '== plan'; run plan images
echo '== before'; cached
echo '== beside mine'; run remove images; images; cached
docker rm mine > /dev/null
echo '== alone'; run remove images; images; cached
echo '== again'; run plan images
echo '== notes'; ls /var/lib/tinderbox/undo
