// CodeMirror in a shadow root: there it makes constructed style sheets, which the Content-Security-Policy allows, instead of
// style elements, which it does not.
import { defaultKeymap, history, historyKeymap, indentWithTab } from '@codemirror/commands'
import { bracketMatching, HighlightStyle, syntaxHighlighting } from '@codemirror/language'
import { highlightSelectionMatches, searchKeymap } from '@codemirror/search'
import { Compartment, EditorState } from '@codemirror/state'
import { EditorView, highlightActiveLine, keymap, lineNumbers } from '@codemirror/view'
import { tags } from '@lezer/highlight'
import { openAllowed } from '../../../../components/csp-document.ts'
import { loadLanguage } from './languages.ts'

export interface CodeView {
  readText(): string
  replaceText(text: string): void
  focus(): void
  dispose(): void
}

interface Options {
  name: string
  text: string
  label: string
  isReadOnly: boolean
  onChange?: () => void
  onSave?: () => void
}

const look = EditorView.theme({
  '&': { height: '100%', color: 'var(--ink)', backgroundColor: 'var(--surface)', fontSize: '13.5px' },
  '&.cm-focused': { outline: 'none' },
  '.cm-scroller': { fontFamily: 'var(--mantine-font-family-monospace)', lineHeight: '1.55' },
  '.cm-content': { caretColor: 'var(--accent)' },
  '.cm-gutters': { backgroundColor: 'transparent', color: 'var(--ink-faint)', border: 'none' },
  '.cm-activeLine, .cm-activeLineGutter': { backgroundColor: 'color-mix(in srgb, var(--ink) 4%, transparent)' },
  '&.cm-focused .cm-selectionBackground, .cm-selectionBackground': {
    backgroundColor: 'color-mix(in srgb, var(--accent) 24%, transparent) !important',
  },
  '.cm-cursor': { borderLeftColor: 'var(--accent)' },
  '.cm-panels': { backgroundColor: 'var(--surface-raised)', color: 'var(--ink)' },
  '.cm-textfield': { backgroundColor: 'var(--surface)', border: '1px solid var(--line-strong)', borderRadius: '6px' },
  '.cm-button': { backgroundImage: 'none', backgroundColor: 'var(--surface)', borderRadius: '6px' },
})

const colours = HighlightStyle.define([
  { tag: [tags.propertyName, tags.definition(tags.variableName), tags.tagName, tags.keyword], color: 'var(--accent)' },
  { tag: [tags.string, tags.attributeValue], color: 'var(--good)' },
  { tag: [tags.number, tags.bool, tags.null, tags.atom], color: 'var(--warn)' },
  { tag: [tags.comment, tags.meta], color: 'var(--ink-faint)', fontStyle: 'italic' },
  { tag: tags.invalid, color: 'var(--bad)' },
])

export function createCodeView(host: HTMLElement, options: Options): CodeView {
  const root = host.shadowRoot ?? host.attachShadow({ mode: 'open' })
  const language = new Compartment()
  const save = () => {
    options.onSave?.()
    return true
  }
  const state = EditorState.create({
    doc: options.text,
    extensions: [
      lineNumbers(),
      history(),
      bracketMatching(),
      highlightActiveLine(),
      highlightSelectionMatches(),
      syntaxHighlighting(colours),
      look,
      language.of([]),
      EditorView.contentAttributes.of({ 'aria-label': options.label, spellcheck: 'false' }),
      EditorState.readOnly.of(options.isReadOnly),
      keymap.of([{ key: 'Mod-s', run: save, preventDefault: true }]),
      keymap.of([...defaultKeymap, ...historyKeymap, ...searchKeymap, indentWithTab]),
      EditorView.updateListener.of(({ docChanged }) => docChanged && options.onChange?.()),
    ],
  })
  const view = openAllowed(() => new EditorView({ root, parent: root, state }))
  loadLanguage(options.name).then(
    (loaded) => loaded && view.dispatch({ effects: language.reconfigure(loaded) }),
    // Without its colours a text can be edited all the same.
    () => {},
  )
  return {
    readText: () => view.state.doc.toString(),
    replaceText: (text) => view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: text } }),
    focus: () => view.focus(),
    dispose: () => view.destroy(),
  }
}
