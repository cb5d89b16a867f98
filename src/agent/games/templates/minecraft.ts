// Minecraft: Java Edition and what speaks its protocol, and Bedrock.
import type { Template } from '../../../contract/games/template-format.ts'

const MEMORY = { if: 'server.heapMiB', args: ['-Xms128M', '-Xmx{{server.heapMiB}}M'] }

const EULA = {
  name: 'EULA',
  title: 'Minecraft EULA',
  description: 'Set it to true to accept https://aka.ms/MinecraftEULA.',
  type: 'boolean',
  default: false,
} as const

const commonVariables = [
  { name: 'MOTD', title: 'Message of the day', type: 'text', default: 'A Minecraft server', maxLength: 150 },
  { name: 'MAX_PLAYERS', title: 'Players at once', type: 'integer', default: 20, min: 1, max: 1000 },
  { name: 'LEVEL_NAME', title: 'World folder', type: 'text', default: 'world', form: 'dashed', isRequired: true },
  { name: 'ONLINE_MODE', title: 'Check accounts with Mojang', type: 'boolean', default: true },
] as const

/** As vanilla, Paper and Forge begin a line. What players say comes after their names, so no chat begins like this. */
const logged = (text: string) => [
  `^[{time}] [Server thread/INFO]: ${text}`,
  `^[{time} INFO]: ${text}`,
  `^[{time}] [Server thread/INFO] [{logger}]: ${text}`,
  `^[{date} {time}] [Server thread/INFO] [{logger}]: ${text}`,
]

const java = {
  defaultPort: 25565,
  srv: '_minecraft._tcp',
  ready: [')! For help, type '],
  stop: [
    { command: 'stop', timeoutSeconds: 120, message: 'Waiting for the world to be saved' },
    { signal: 'SIGTERM', timeoutSeconds: 60 },
  ],
  // By its console, and by a player.
  stopsByItself: [...logged('Stopping the server'), ...logged('[{player}: Stopping the server]')],
  joins: [']: {player} joined the game'],
  leaves: [']: {player} left the game'],
  ports: [{ name: 'game', protocol: 'tcp' }],
  query: { type: 'minecraft', port: 'game' },
  quiesce: {
    before: ['save-off', 'save-all flush'],
    isStill: logged('Saved the game'),
    timeoutSeconds: 60,
    after: ['save-on'],
  },
  // Not what is downloaded: a backup has to come up without a network.
  ignored: ['/logs/', '*.log.gz', 'session.lock'],
} satisfies Partial<Record<keyof Template, unknown>>

const SERVER_PROPERTIES = {
  path: '/server.properties',
  format: 'properties',
  settings: [
    { key: ['server-port'], value: '{{server.port}}' },
    { key: ['motd'], value: '{{MOTD}}' },
    { key: ['max-players'], value: '{{MAX_PLAYERS}}' },
    { key: ['level-name'], value: '{{LEVEL_NAME}}' },
    { key: ['online-mode'], value: '{{ONLINE_MODE}}' },
  ],
} as const

const EULA_FILE = {
  path: '/eula.txt',
  format: 'properties',
  settings: [{ key: ['eula'], value: '{{EULA}}' }],
} as const

const EULA_ACCEPTED = {
  kind: 'line',
  path: '/eula.txt',
  line: 'eula=true',
  hint: 'Accept the Minecraft EULA: set the variable EULA to true.',
} as const

const JAR = { name: 'JAR', title: 'Jar', type: 'text', isRequired: true, pattern: '^[\\w.-]+\\.jar$' } as const
const JAVA_IMAGES = [
  { name: 'Java 25', image: 'docker.io/library/eclipse-temurin:25-jre' },
  { name: 'Java 21', image: 'docker.io/library/eclipse-temurin:21-jre' },
  { name: 'Java 17', image: 'docker.io/library/eclipse-temurin:17-jre' },
  { name: 'Java 8', image: 'docker.io/library/eclipse-temurin:8-jre' },
]

const jarTemplate = (template: Pick<Template, 'id' | 'name' | 'description' | 'isTested'>, jar: string): Template =>
  structuredClone({
    format: 1,
    ...template,
    ...java,
    runtimes: ['process', 'container'],
    images: JAVA_IMAGES,
    variables: [EULA, { ...JAR, default: jar }, ...commonVariables],
    requires: [
      { kind: 'program', program: 'java', hint: 'Install Java, for example with: apt install default-jre-headless' },
      { kind: 'file', path: '/{{JAR}}', hint: 'Upload the jar of the server, or set the variable JAR to its name.' },
      EULA_ACCEPTED,
    ],
    start: { args: ['java', MEMORY, '-jar', '{{JAR}}', 'nogui'] },
    configFiles: [SERVER_PROPERTIES, EULA_FILE],
  } as unknown as Template)

export const minecraftJava = jarTemplate(
  {
    id: 'minecraft-java',
    name: 'Minecraft: Java Edition',
    description: 'Runs a server jar that you supply, vanilla or modified.',
  },
  'server.jar',
)

export const paper = jarTemplate(
  {
    id: 'paper',
    name: 'Minecraft: Paper',
    description: 'Runs a jar from https://papermc.io/downloads/paper that you upload as paper.jar.',
    isTested: false,
  },
  'paper.jar',
)

export const minecraftBedrock: Template = {
  format: 1,
  id: 'minecraft-bedrock',
  name: 'Minecraft: Bedrock Edition',
  description: "Runs Mojang's dedicated server: upload and unpack its zip first.",
  isTested: false,
  defaultPort: 19132,
  runtimes: ['process', 'container'],
  images: [{ name: 'Ubuntu 24.04', image: 'docker.io/library/ubuntu:24.04' }],
  variables: [
    { name: 'SERVER_NAME', title: 'Name in the list', type: 'text', default: 'Bedrock server', maxLength: 100 },
    { name: 'MAX_PLAYERS', title: 'Players at once', type: 'integer', default: 10, min: 1, max: 1000 },
    { name: 'LEVEL_NAME', title: 'World', type: 'text', default: 'Bedrock level', isRequired: true, maxLength: 100 },
    { name: 'GAME_MODE', type: 'choice', default: 'survival', choices: ['survival', 'creative', 'adventure'] },
  ],
  requires: [
    {
      kind: 'file',
      path: '/bedrock_server',
      hint: 'Upload the zip of the dedicated server from minecraft.net and unpack it.',
    },
  ],
  start: { args: ['./bedrock_server'], environment: { LD_LIBRARY_PATH: '.' } },
  configFiles: [
    {
      path: '/server.properties',
      format: 'properties',
      settings: [
        { key: ['server-port'], value: '{{server.port}}' },
        { key: ['server-portv6'], value: '{{port.game-v6}}' },
        { key: ['server-name'], value: '{{SERVER_NAME}}' },
        { key: ['max-players'], value: '{{MAX_PLAYERS}}' },
        { key: ['level-name'], value: '{{LEVEL_NAME}}' },
        { key: ['gamemode'], value: '{{GAME_MODE}}' },
      ],
    },
  ],
  ready: ['Server started.'],
  stop: [
    { command: 'stop', timeoutSeconds: 60, message: 'Waiting for the world to be saved' },
    { signal: 'SIGTERM', timeoutSeconds: 30 },
  ],
  stopsByItself: ['Server stop requested.'],
  joins: ['Player connected: {player},'],
  leaves: ['Player disconnected: {player},'],
  ports: [
    { name: 'game', protocol: 'udp' },
    { name: 'game-v6', protocol: 'udp', offset: 1 },
  ],
  query: { type: 'mbe', port: 'game' },
  quiesce: {
    before: ['save hold'],
    poll: 'save query',
    isStill: 'Data saved. Files are now ready to be copied.',
    timeoutSeconds: 60,
    after: ['save resume'],
  },
}
