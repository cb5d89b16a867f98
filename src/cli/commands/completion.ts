// `gamekeeper completion bash|zsh|fish`: a script for the shell, which asks `completion words` what could follow.
import { command, type Family } from '../command.ts'
import type { Context } from '../context.ts'
import { forBash, splitLine } from '../shell-words.ts'
import { suggest } from '../suggestions.ts'

const BASH = `# gamekeeper completion for bash: eval "$(gamekeeper completion bash)"
_gamekeeper() {
  local IFS=$'\\n'
  COMPREPLY=($(gamekeeper completion words --line "\${COMP_LINE:0:COMP_POINT}" 2>/dev/null))
}
complete -o default -F _gamekeeper gamekeeper
`

const ZSH = `#compdef gamekeeper
# gamekeeper completion for zsh, after compinit: eval "$(gamekeeper completion zsh)"
_gamekeeper() {
  local line
  local -a lines values labels
  lines=("\${(@f)$(gamekeeper completion words -- "\${(@Q)words[2,CURRENT]}" 2>/dev/null)}")
  for line in $lines; do
    values+=("\${line%%$'\\t'*}")
    labels+=("\${line/$'\\t'/  -- }")
  done
  if (( \${#values} )); then
    compadd -l -d labels -a values
  else
    _files
  fi
}
if [ "\${funcstack[1]}" = "_gamekeeper" ]; then
  _gamekeeper "$@"
else
  compdef _gamekeeper gamekeeper
fi
`

const FISH = `# gamekeeper completion for fish: gamekeeper completion fish | source
function __gamekeeper_find
  set -l words (commandline -opc)
  set -l current (commandline -ct)
  set -g __gamekeeper_found (gamekeeper completion words -- $words[2..-1] "$current" 2>/dev/null)
  test (count $__gamekeeper_found) -gt 0
end
complete -c gamekeeper -n __gamekeeper_find -f -a '$__gamekeeper_found'
`

const script = (shell: string, text: string, install: string) =>
  command({
    summary: `Print the completion script for ${shell}`,
    args: [],
    options: {},
    examples: [install],
    async run(context) {
      if (context.json) context.print({ shell, script: text })
      else context.io.stdout.write(text)
      return undefined
    },
  })

const words = command({
  summary: 'Print completions; called by the scripts',
  description:
    'One per line: a word, a tab and a description. Prints nothing where it cannot know, such as for a file.',
  args: ['word*'],
  options: { line: { type: 'string', value: 'TEXT', help: 'The line as bash has it; the output is quoted for bash' } },
  examples: ['gamekeeper completion words -- server s', 'gamekeeper completion words --line "gamekeeper server s"'],
  async run(context, { line }, { word: given }) {
    const lines = line === undefined ? await described(context, given) : await quoted(context, line)
    if (context.json) context.print(lines)
    else for (const text of lines) context.io.stdout.write(`${text}\n`)
    return undefined
  },
})

async function described(context: Context, given: readonly string[]): Promise<string[]> {
  return (await suggest(context, given)).map(({ word, help }) => `${word}\t${help}`)
}

async function quoted(context: Context, line: string): Promise<string[]> {
  const split = splitLine(line)
  const found = await suggest(context, split.words.slice(1))
  return found.map(({ word }) => forBash(word, split))
}

export const completion: Family = {
  subcommands: {
    bash: script('bash', BASH, 'gamekeeper completion bash > ~/.local/share/bash-completion/completions/gamekeeper'),
    zsh: script('zsh', ZSH, 'gamekeeper completion zsh > ~/.zfunc/_gamekeeper'),
    fish: script('fish', FISH, 'gamekeeper completion fish > ~/.config/fish/completions/gamekeeper.fish'),
    words,
  },
}
