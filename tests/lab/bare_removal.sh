# In a container of the lab hosts' file system, without systemd and without docker: what a deploy leaves there, made by
# hand, and then taken back by the real program with the real apt. Prints sections, each after a line `== name`.
export PYTHONDONTWRITEBYTECODE=1
rm -f /usr/bin/docker
for each in systemctl journalctl nvidia-smi; do
    printf '#!/bin/sh\necho "$*" >> /asked; case "$*" in *get-default*) echo graphical.target;; *is-enabled*) echo enabled;; esac\n' > /usr/bin/$each
    chmod 755 /usr/bin/$each
done
state=/var/lib/tinderbox
units=/etc/systemd/system
mkdir -p $state/undo/files/etc/docker $state/undo/files$units/ssh.service.d $state/undo/files/etc/sudoers.d $state/ledger/svc \
    $state/caches/svc/keyed $state/jobs/start-svc-r1 $state/images $state/encodings /etc/tinderbox /etc/docker \
    /usr/local/lib/tinderbox $units/ssh.service.d /etc/apt/keyrings
cp /programs/*.py /usr/local/lib/tinderbox
printf '{ "dns" :["10.0.0.1"] }' > $state/undo/files/etc/docker/daemon.json
echo '{"dns": ["10.0.0.1"], "runtimes": {"nvidia": {"args": [], "path": "nvidia-container-runtime"}},
    "features": {"buildkit": true}, "log-driver": "json-file", "log-opts": {"max-size": "100m", "max-file": "3"}}' \
    > /etc/docker/daemon.json
: > $state/undo/files$units/ssh.service.d/tinderbox.conf.absent
echo x > $units/ssh.service.d/tinderbox.conf
echo '{"rsync": {"added": ["rsync", "libpopt0"], "before": {}}, "curl": {"added": ["libcurl4"], "before": {"curl": "1"}}}' \
    > $state/undo/packages.json
echo '{"clocks": 2100, "monitoring exporter": "x"}' > $state/undo/system.json
for each in exporter clocks svc lab nightly-mine; do echo u > $units/tinderbox-$each.service; done
echo k > /etc/apt/keyrings/tinderbox-x.gpg
echo '{"release": {"image": "tinderbox/x:0123456789ab", "model": "o/n", "commit": "c"}, "events": []}' > $state/ledger/svc/r1.json
ln -s r1.json $state/ledger/svc/current
echo x > /etc/tinderbox/svc.env
echo t > /etc/tinderbox/hub-token.t
mkdir -m 700 $state/undo/adopted
echo '{"state": "stopped", "named": "unit old.service", "units": ["old.service"], "enabled": ["old.service"], "passing": []}' \
    > $state/undo/adopted/svc.json
useradd --create-home --shell /bin/sh owner
groupadd --force docker
gpasswd --add owner docker > /dev/null
mkdir /home/owner/.ssh
printf 'ssh-ed25519 AAA own\nssh-ed25519 BBB tinderbox: laptop\n' > /home/owner/.ssh/authorized_keys
chown -R owner /home/owner/.ssh
: > $state/undo/files/etc/sudoers.d/tinderbox-owner.absent
echo 'owner ALL=(ALL) NOPASSWD: ALL' > /etc/sudoers.d/tinderbox-owner
echo owner > $state/undo/docker-group
cp -r /programs /run/copy
run() { python3 /run/copy/remove_layers.py "$@" 2>&1; echo "status $?"; }
all='engine images weights system'
echo '== plan'; run plan $all
echo '== system alone'; run plan system
echo '== images alone'; run remove images
echo '== all'; run remove $all
echo '== again'; run plan $all; run remove $all
echo '== started'; grep -e old.service /asked
echo '== left'
cat /etc/docker/daemon.json; echo
ls -d $state/* /etc/tinderbox /usr/local/lib/tinderbox $units/ssh.service.d /etc/apt/keyrings/* $units/tinderbox-* /etc/sudoers.d/tinderbox-owner 2>/dev/null
dpkg-query -W -f '${Package}\n' rsync libpopt0 libcurl4 2>/dev/null
echo '== access'; run plan access; run remove access; run plan access
cat /home/owner/.ssh/authorized_keys; id -Gn owner; ls -d $state /etc/sudoers.d/tinderbox-owner 2>/dev/null; true
