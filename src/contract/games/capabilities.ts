// Which capabilities a template may have a container keep for its game. None of them reaches beyond the container, and none
// makes a game root or gives it files that are not its own: engines hand them to it although it is not root, and the server's
// files are those of the machine.
export const GAME_CAPABILITIES: readonly string[] = ['IPC_LOCK', 'KILL', 'NET_BIND_SERVICE', 'SYS_NICE']
