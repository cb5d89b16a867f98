// The unit by which systemd runs the service: with what it needs, and nothing else.

export interface Unit {
  /** What runs: a Node and the file that it is given. */
  node: string
  main: string
  user: string
  dataDir: string
  settingsFile: string
}

export const unitText = ({
  node,
  main,
  user,
  dataDir,
  settingsFile,
}: Unit) => `# Written by "gamekeeper service install", which overwrites it each time. For your own changes: systemctl edit gamekeeper
[Unit]
Description=Gamekeeper, which keeps the files, backups and history of game servers
# How long deleted servers are kept is counted by the clock, so it has to be right.
Wants=network-online.target
After=network-online.target time-sync.target postgresql.service
StartLimitIntervalSec=0

[Service]
Type=exec
User=${user}
Group=${user}
UMask=0077
WorkingDirectory=${dataDir}
Environment=NODE_ENV=production GAMEKEEPER_DATA_DIR=${dataDir}
EnvironmentFile=-${settingsFile}
ExecStart=${node} ${main} serve
# Also where PostgreSQL is not up yet.
Restart=on-failure
RestartSec=3
TimeoutStopSec=15
LimitNOFILE=65536
# Games outlive a restart, an upgrade and a crash of the service, and one that runs out of memory does not end it.
KillMode=process
OOMPolicy=continue
# So that games have control groups of their own, beside that of the service. Before systemd 254 they have none.
Delegate=yes
DelegateSubgroup=gamekeeper

# Ports below 1024: 443 for TLS without a proxy, 53 for the embedded name server.
CapabilityBoundingSet=CAP_NET_BIND_SERVICE
AmbientCapabilities=CAP_NET_BIND_SERVICE
NoNewPrivileges=yes
ProtectSystem=strict
ReadWritePaths=${dataDir}
ProtectHome=yes
PrivateTmp=yes
PrivateDevices=yes
PrivateMounts=yes
ProtectClock=yes
ProtectKernelModules=yes
RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX AF_NETLINK
RestrictRealtime=yes
KeyringMode=private
LockPersonality=yes
# What bubblewrap needs to keep a game apart: namespaces of its own, mounts in them, and a name for its machine; for rehearsals a
# network too.
RestrictNamespaces=user mnt pid ipc uts cgroup net
SystemCallFilter=@system-service @mount sethostname
SystemCallErrorNumber=EPERM
# Left out on purpose, since games would not start: ProtectProc, ProcSubset, ProtectKernelTunables and ProtectKernelLogs cover
# parts of /proc, and the kernel then lets nobody mount another one; ProtectHostname takes sethostname away; ProtectControlGroups
# keeps games out of groups of their own; SystemCallArchitectures=native stops the many games that are 32-bit programs.
# RemoveIPC would take shared memory from games that go on. MemoryDenyWriteExecute: Node compiles while it runs. RestrictSUIDSGID:
# a restore sets the modes that the files had.

[Install]
WantedBy=multi-user.target
`
