// Which names of environment variables a process of the machine is not given. Those that make the dynamic loader or the C
// library load a stranger's code or data, and those that a shell keeps for itself: a shell hands the environment over.

/** What glibc itself forgets in a program with privileges. Where a game's own libraries are is for the game to say. */
const OF_LOADER = [
  'LD_(?!LIBRARY_PATH$)\\w*',
  ...['GCONV_PATH', 'GETCONF_DIR', 'GLIBC_TUNABLES', 'HOSTALIASES', 'LOCALDOMAIN', 'LOCPATH', 'MALLOC_TRACE'],
  ...['NIS_PATH', 'NLSPATH', 'RESOLV_HOST_CONF', 'RES_OPTIONS'],
]
const OF_SHELLS = ['BASHOPTS', 'BASH_ENV', 'EUID', 'OPTIND', 'PPID', 'SHELLOPTS', 'UID']
const OF_OURS = ['GAMEKEEPER_\\w*']

const REFUSED = new RegExp(`^(?:${[...OF_LOADER, ...OF_SHELLS, ...OF_OURS].join('|')})$`)

export const isRefusedName = (name: string): boolean => REFUSED.test(name)
