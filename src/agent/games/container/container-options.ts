// What an engine is told to make for a game: as little as a game can do with. Decided from what is known, and nothing else.
import { posix } from 'node:path'
import type { GameLimits } from '../../../contract/agent/agent-games.ts'
import { fail } from '../../../contract/errors.ts'
import { DEFAULT_PROCESSES_MAX } from '../../../contract/fixed-limits.ts'
import { GAME_CAPABILITIES } from '../../../contract/games/capabilities.ts'
import type { Launch, LaunchContainer } from '../../../contract/games/launch.ts'
import type { Runtime } from '../../../contract/games/power.ts'
import { IMAGE_FORM } from '../../../contract/games/runtime-choice.ts'
import type { GameUser } from '../process/isolation.ts'
import { LOOPBACK } from '../remote-console/connection.ts'
import type { ContainerOptions, EngineInfo } from './engine.ts'

/** Where a container finds its pipes, and a script that it is to run. */
const PIPES_INSIDE = '/gamekeeper'
export const SCRIPT_NAME = 'install.sh'
/** Where scripts of eggs expect the files of the server. */
const INSTALLED_INTO = '/mnt/server'
const TMP_OPTIONS = 'rw,exec,nosuid,nodev,size=256m,mode=1777'
const OPEN_FILES_MAX = 65_536
/** Of one user, threads included. What holds a game to its processes is its control group. */
const USER_PROCESSES_MAX = 16_384

/** What package managers need. */
const OF_INSTALLERS = ['CHOWN', 'DAC_OVERRIDE', 'FOWNER', 'FSETID', 'KILL', 'SETGID', 'SETUID']

/** Opened for both: the game never sees that nobody reads, and never that nobody writes. */
const CONNECT = 'exec "$@" 0<>"$0/in" 1<>"$0/out" 2<>"$0/err"'

export const containerName = (runId: string) => `gamekeeper-${runId}`
/** Of the containers of a server: its id is the value. */
export const SERVER_LABEL = 'gamekeeper.server'

const IMAGE = new RegExp(IMAGE_FORM, 'u')

/** Fails with a code where the template asks for what no container gets. */
export function checkContainer({ image, capabilities, directory }: LaunchContainer): void {
  if (image.length > 255 || !IMAGE.test(image))
    throw fail('not_startable', `${JSON.stringify(image)} is not the name of an image. Correct the template.`)
  const refused = capabilities.filter((capability) => !GAME_CAPABILITIES.includes(capability))
  if (refused.length > 0)
    throw fail('not_startable', `The template asks for ${refused.join(', ')}, which no game gets. Correct it.`)
  if (posix.normalize(directory) !== directory || directory === '/')
    throw fail('not_startable', `${directory} is no directory that files can be seen at. Correct the template.`)
}

export interface ContainerRequest {
  serverId: string
  runId: string
  launch: Launch
  container: LaunchContainer
  limits: GameLimits
  user: GameUser
  /** Whether the service is. */
  isRoot: boolean
  info: EngineInfo
  filesFolder: string
  pipesFolder: string
  label: string
  /** `none`: nothing but a loopback of its own. That of the engine by default. */
  network?: 'none' | undefined
  ownLimits: OwnLimits
}

/** The hard limits of the service: an engine may not be able to give more. */
export interface OwnLimits {
  openFiles: number
  processes: number
}

export function containerOptions(request: ContainerRequest): ContainerOptions {
  const { serverId, runId, launch, container, user, isRoot, filesFolder, pipesFolder, info } = request
  const { installer } = container
  const remotePort = launch.quiesce?.remote?.port
  const argv = installer ? [...installer.entrypoint.split(/\s+/), posix.join(PIPES_INSIDE, SCRIPT_NAME)] : launch.argv
  const directory = installer ? INSTALLED_INTO : container.directory
  const environment = { ...launch.environment, HOME: installer ? '/root' : directory, TERM: 'dumb', LANG: 'C.UTF-8' }
  const bind = (Source: string, Target: string, ReadOnly: boolean) => ({
    Type: 'bind' as const,
    Source,
    Target,
    ReadOnly,
  })
  return {
    Image: container.image,
    Labels: { [request.label]: serverId, 'gamekeeper.run': runId },
    Entrypoint: ['/bin/sh', '-c', CONNECT, PIPES_INSIDE],
    Cmd: [...argv],
    Env: Object.entries(environment).map(([name, value]) => `${name}=${value}`),
    WorkingDir: posix.join(directory, launch.workingDirectory),
    // Root inside is root outside where the service is: elsewhere it could not manage the files afterwards.
    User: installer && isRoot ? '0:0' : `${user.uid}:${user.gid}`,
    Hostname: 'server',
    ExposedPorts: Object.fromEntries(launch.ports.map(({ port, protocol }) => [`${port}/${protocol}`, {}])),
    HostConfig: {
      ...limitsOf(request),
      Mounts: [bind(filesFolder, directory, false), bind(pipesFolder, PIPES_INSIDE, true)],
      PortBindings: Object.fromEntries(
        launch.ports.map(({ port, protocol }) => [
          `${port}/${protocol}`,
          // A console is nobody else's.
          [{ HostPort: String(port), ...(protocol === 'tcp' && port === remotePort ? { HostIp: LOOPBACK } : {}) }],
        ]),
      ),
      ...(request.network ? { NetworkMode: request.network } : {}),
      ReadonlyRootfs: installer === null,
      Tmpfs: { '/tmp': TMP_OPTIONS },
      CapDrop: ['ALL'],
      CapAdd: [...(installer ? OF_INSTALLERS : container.capabilities)],
      SecurityOpt: ['no-new-privileges'],
      Privileged: false,
      // Without root, an engine sees our files as root's otherwise.
      ...(info.SecurityOptions?.includes('name=rootless') ? { UsernsMode: 'keep-id' } : {}),
      RestartPolicy: { Name: 'no' },
      // Its output goes through the pipes, and is kept in the console.
      LogConfig: { Type: 'none', Config: {} },
    },
  }
}

function limitsOf({ limits, info, ownLimits }: ContainerRequest): NonNullable<ContainerOptions['HostConfig']> {
  const { memoryBytes, cpuPercent, processes } = limits
  const ulimit = (Name: string, most: number) => ({ Name, Soft: most, Hard: most })
  return {
    ...(memoryBytes !== null && info.MemoryLimit ? { Memory: memoryBytes } : {}),
    ...(memoryBytes !== null && info.SwapLimit ? { MemorySwap: memoryBytes } : {}),
    ...(cpuPercent !== null && info.CpuCfsQuota ? { NanoCpus: cpuPercent * 10_000_000 } : {}),
    ...(info.PidsLimit ? { PidsLimit: processes ?? DEFAULT_PROCESSES_MAX } : {}),
    // By default an engine gives what it may have itself, which may be more than it can give here.
    Ulimits: [
      ulimit('nofile', Math.min(OPEN_FILES_MAX, ownLimits.openFiles)),
      ulimit('nproc', Math.min(USER_PROCESSES_MAX, ownLimits.processes)),
    ],
  }
}

export function runtimeOf(container: LaunchContainer, user: GameUser, info: EngineInfo): Runtime {
  const held = (isHeld: boolean | undefined) => (isHeld ? 'cgroup' : 'none')
  return {
    kind: 'container',
    image: container.image,
    isolation: 'container',
    user: user.uid,
    enforced: { memory: held(info.MemoryLimit), cpu: held(info.CpuCfsQuota), processes: held(info.PidsLimit) },
  }
}
