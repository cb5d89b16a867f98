// A template says how a game is installed, started, watched and stopped. It is data: no part of it runs here, and every
// field has a bound. Checks that a schema cannot make are in src/templates/check.ts.
import {
  TEMPLATE_ARGS_MAX,
  TEMPLATE_CONFIG_FILES_MAX,
  TEMPLATE_SCRIPT_MAX_CHARS,
  TEMPLATE_SETTINGS_MAX,
  TEMPLATE_VARIABLES_MAX,
} from '../fixed-limits.ts'
import { Closed, MULTILINE, Name, OneOf, type Static, Type } from '../schema.ts'

export const TEMPLATE_FORMAT = 1
export const TEMPLATE_ID_FORM = '^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$'
export const TemplateId = Type.String({ pattern: TEMPLATE_ID_FORM, maxLength: 63 })

/** The last two are line ends, as themselves: not every engine knows an escape for them. */
const LINE_CONTROLS = '\\x00-\\x1f\\x7f-\\x9f\u2028\u2029'
/** One line: it may be empty, and has no control characters. */
const LINE = `^[^${LINE_CONTROLS}]*$`
const line = (maxLength: number, options: object = {}) => Type.String({ maxLength, pattern: LINE, ...options })
const prose = (maxLength: number) => Type.String({ maxLength, pattern: MULTILINE })

/** Also the name of an environment variable. */
export const VariableName = Type.String({ pattern: '^[A-Za-z_][A-Za-z0-9_]{0,63}$' })
/** A variable, or something known of the server, such as `server.memoryMiB`. */
const FactName = Type.String({ pattern: '^[A-Za-z_][A-Za-z0-9_.-]{0,63}$' })
const PortName = Type.String({ pattern: '^[a-z][a-z0-9-]{0,31}$' })
const Port = Type.Integer({ minimum: 1, maximum: 65535 })
/** With `{{NAME}}` where a value goes. */
const Text = line(4096)
const FilePath = line(1024, { minLength: 2, pattern: `^/[^${LINE_CONTROLS}]*$` })
const LinePattern = line(500, {
  minLength: 1,
  description:
    'Found in a line wherever it stands, with `^` first where it begins, with `$` last where it ends; `*` is any text, `{name}` any text without spaces',
})
/** One schema for one and for several: a union would answer one fault with two. */
const OneOrMorePatterns = Type.Unsafe<string | string[]>({
  ...LinePattern,
  // In this order: what writes answers takes whatever can be written as a text for one.
  type: ['array', 'string'],
  items: LinePattern,
  minItems: 1,
  maxItems: 20,
})
const LinePatterns = Type.Optional(Type.Array(LinePattern, { maxItems: 20 }))
const Commands = Type.Array(line(1000, { minLength: 1 }), { maxItems: 20 })

/** One schema for values of three types: a union would answer one fault with three. */
const Scalar = Type.Unsafe<string | number | boolean>({
  type: ['string', 'number', 'boolean'],
  maxLength: 4096,
  pattern: LINE,
})

export const VARIABLE_TYPES = ['text', 'integer', 'number', 'boolean', 'choice', 'secret'] as const
export const TEXT_FORMS = ['letters', 'digits', 'alphanumeric', 'dashed', 'url', 'ip', 'email'] as const

export const TemplateVariable = Closed({
  name: VariableName,
  title: Type.Optional(line(191)),
  description: Type.Optional(prose(4000)),
  type: OneOf(VARIABLE_TYPES),
  default: Type.Optional(Scalar),
  isRequired: Type.Optional(Type.Boolean({ description: 'Whether its value may not be empty. false by default' })),
  isEditable: Type.Optional(Type.Boolean({ description: 'Whether owners of servers may set it. true by default' })),
  isVisible: Type.Optional(Type.Boolean({ description: 'Whether owners of servers are shown it. true by default' })),
  minLength: Type.Optional(Type.Integer({ minimum: 0, maximum: 4096 })),
  maxLength: Type.Optional(Type.Integer({ minimum: 0, maximum: 4096 })),
  min: Type.Optional(Type.Number()),
  max: Type.Optional(Type.Number()),
  form: Type.Optional(OneOf(TEXT_FORMS)),
  pattern: Type.Optional(line(500, { description: 'A regular expression without lookaround and back references' })),
  noneOf: Type.Optional(Type.Array(line(191), { maxItems: 200 })),
  choices: Type.Optional(Type.Array(line(191), { minItems: 1, maxItems: 200 })),
  whenTrue: Type.Optional(line(191, { description: 'How true is written. `true` by default' })),
  whenFalse: Type.Optional(line(191, { description: 'How false is written. `false` by default' })),
})
export type TemplateVariable = Static<typeof TemplateVariable>

export interface OptionalArguments {
  if: string
  args: string[]
}

/** A text is one argument, whatever is filled in; with `if`, several that are left out where the value is empty or false. */
const Argument = Type.Unsafe<string | OptionalArguments>({
  type: ['string', 'object'],
  maxLength: 4096,
  pattern: LINE,
  properties: { if: FactName, args: Type.Array(Text, { minItems: 1, maxItems: 50 }) },
  required: ['if', 'args'],
  additionalProperties: false,
})

const Start = Closed({
  args: Type.Optional(Type.Array(Argument, { minItems: 1, maxItems: TEMPLATE_ARGS_MAX })),
  shellLine: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 16_384,
      pattern: MULTILINE,
      description: 'For a container only. Variables reach it by the environment',
    }),
  ),
  shell: Type.Optional(OneOf(['sh', 'bash'], { description: '`sh` by default' })),
  directory: Type.Optional(FilePath),
  environment: Type.Optional(
    Type.Record(VariableName, Text, { additionalProperties: false, maxProperties: TEMPLATE_VARIABLES_MAX + 20 }),
  ),
})

const StopStep = Closed({
  command: Type.Optional(line(1000, { minLength: 1 })),
  signal: Type.Optional(OneOf(['SIGINT', 'SIGTERM', 'SIGQUIT'])),
  timeoutSeconds: Type.Integer({ minimum: 1, maximum: 3600 }),
  message: Type.Optional(line(191)),
})

const TemplatePort = Closed({
  name: PortName,
  protocol: OneOf(['tcp', 'udp']),
  offset: Type.Optional(Type.Integer({ minimum: 0, maximum: 1000, description: 'Added to the port of the server' })),
  variable: Type.Optional(VariableName),
  fixed: Type.Optional(Port),
})

export const CONFIG_FORMATS = ['properties', 'json', 'yaml', 'toml', 'ini', 'xml', 'text'] as const
export type ConfigFormat = (typeof CONFIG_FORMATS)[number]

const Setting = Closed({
  key: Type.Array(line(500, { minLength: 1 }), {
    minItems: 1,
    maxItems: 20,
    description:
      'The way to the value. `*` is every entry; a last `@name` an attribute; in plain text how a line begins',
  }),
  value: Scalar,
  isNumeric: Type.Optional(Type.Boolean({ description: 'A text that is a whole number is written as one' })),
  ifEquals: Type.Optional(Scalar),
  ifMatches: Type.Optional(line(500)),
})
export type TemplateSetting = Static<typeof Setting>

const ConfigFile = Closed({
  path: FilePath,
  format: OneOf(CONFIG_FORMATS),
  settings: Type.Array(Setting, { minItems: 1, maxItems: TEMPLATE_SETTINGS_MAX }),
})

export const QUIESCE_WAYS = ['console', 'rcon', 'management'] as const

export const INSTALL_ACTIONS = ['download', 'unpack', 'write', 'run', 'script'] as const
const InstallStep = Closed({
  do: OneOf(INSTALL_ACTIONS),
  url: Type.Optional(line(2048, { pattern: '^https?://[^\\x00-\\x20\\x7f-\\x9f]+$' })),
  sha256: Type.Optional(Type.String({ pattern: '^[0-9a-f]{64}$' })),
  path: Type.Optional(FilePath),
  directory: Type.Optional(FilePath),
  text: Type.Optional(prose(TEMPLATE_SCRIPT_MAX_CHARS)),
  args: Type.Optional(Type.Array(Text, { minItems: 1, maxItems: 50 })),
  image: Type.Optional(line(500, { minLength: 1 })),
  entrypoint: Type.Optional(line(191, { minLength: 1 })),
})

export const REQUIREMENTS = ['file', 'program', 'java', 'line'] as const
const Requirement = Closed({
  kind: OneOf(REQUIREMENTS),
  path: Type.Optional(Type.String({ maxLength: 4096, pattern: '^/[^\\x00-\\x1f\\x7f-\\x9f]*$' })),
  program: Type.Optional(line(191, { minLength: 1 })),
  version: Type.Optional(Type.Integer({ minimum: 1, maximum: 999 })),
  line: Type.Optional(line(1000, { minLength: 1 })),
  hint: line(500, { minLength: 1, description: 'What to do where it is missing' }),
})

const Images = Type.Array(Closed({ name: line(191, { minLength: 1 }), image: line(500, { minLength: 1 }) }), {
  minItems: 1,
  maxItems: 50,
})

export const Template = Closed(
  {
    format: Type.Integer({ minimum: TEMPLATE_FORMAT, maximum: TEMPLATE_FORMAT, description: 'Of this file' }),
    id: TemplateId,
    name: Name,
    description: Type.Optional(prose(8000)),
    author: Type.Optional(line(191)),
    tags: Type.Optional(Type.Array(line(64), { maxItems: 32 })),
    origin: Type.Optional(
      Closed({
        kind: OneOf(['egg']),
        version: line(64),
        uuid: Type.Optional(line(191)),
        updateUrl: Type.Optional(line(2048)),
        exportedAt: Type.Optional(line(64)),
      }),
    ),
    isTested: Type.Optional(Type.Boolean({ description: 'Our tests start the real game with it' })),
    defaultPort: Type.Optional(Port),
    srv: Type.Optional(
      Type.String({ pattern: '^_[a-z0-9-]{1,32}\\._(tcp|udp)$', description: 'What its clients look up in DNS' }),
    ),
    runtimes: Type.Array(OneOf(['process', 'container']), { minItems: 1, maxItems: 2 }),
    images: Type.Optional(Images),
    containerDirectory: Type.Optional(
      Type.String({ ...FilePath, description: "Where a container sees the server's files. `/data` by default" }),
    ),
    capabilities: Type.Optional(Type.Array(Type.String({ pattern: '^[A-Z_]{1,40}$' }), { maxItems: 10 })),
    variables: Type.Optional(Type.Array(TemplateVariable, { maxItems: TEMPLATE_VARIABLES_MAX })),
    requires: Type.Optional(Type.Array(Requirement, { maxItems: 20 })),
    install: Type.Optional(Type.Array(InstallStep, { maxItems: 20 })),
    start: Start,
    ready: LinePatterns,
    stop: Type.Array(StopStep, { minItems: 1, maxItems: 10 }),
    stopsByItself: LinePatterns,
    joins: LinePatterns,
    leaves: LinePatterns,
    ports: Type.Optional(Type.Array(TemplatePort, { maxItems: 20 })),
    query: Type.Optional(Closed({ type: Type.String({ pattern: '^[a-z0-9]{1,64}$' }), port: PortName })),
    configFiles: Type.Optional(Type.Array(ConfigFile, { maxItems: TEMPLATE_CONFIG_FILES_MAX })),
    quiesce: Type.Optional(
      Closed({
        via: Type.Optional(
          OneOf(QUIESCE_WAYS, {
            description: 'Where the commands go. `console` by default; the others by the loopback',
          }),
        ),
        port: Type.Optional(PortName),
        secret: Type.Optional(Type.String({ ...VariableName, description: 'The variable that has the password' })),
        before: Commands,
        poll: Type.Optional(
          line(1000, { minLength: 1, description: 'Sent each second until the line of `isStill` has come' }),
        ),
        isStill: Type.Optional(OneOrMorePatterns),
        timeoutSeconds: Type.Integer({ minimum: 1, maximum: 600 }),
        after: Commands,
      }),
    ),
    ignored: Type.Optional(Type.Array(line(1000), { maxItems: 200, description: 'gitignore patterns for backups' })),
  },
  { description: 'See docs/templates.md' },
)
export type Template = Static<typeof Template>
