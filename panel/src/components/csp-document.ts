// xterm.js and CodeMirror style themselves by style elements and attributes, which a strict Content-Security-Policy refuses. Here
// they are given elements whose text goes into constructed style sheets instead: scripts may make those.

export function createCspDocument(): Document {
  return new Proxy(document, {
    get(target, name) {
      if (name === 'createElement') {
        return createAllowed
      }
      const value: unknown = Reflect.get(target, name, target)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
}

/** For what asks the page's own document while it opens: CodeMirror, and part of xterm.js. */
export function openAllowed<T>(open: () => T): T {
  document.createElement = createAllowed as Document['createElement']
  try {
    return open()
  } finally {
    Reflect.deleteProperty(document, 'createElement')
  }
}

function createAllowed(tag: string): HTMLElement {
  return tag === 'style' ? createStyle() : withStyleByScript(Document.prototype.createElement.call(document, tag))
}

/** For the cells of a terminal, which xterm.js makes by the page's own document whenever it draws. */
export function allowSpanStyles(): void {
  HTMLSpanElement.prototype.setAttribute = setAllowed
}

function withStyleByScript(element: HTMLElement): HTMLElement {
  element.setAttribute = setAllowed
  return element
}

/** The text of a style attribute is refused as well; the same by `element.style` is not. Colours beyond the palette need it. */
function setAllowed(this: HTMLElement, name: string, value: string): void {
  if (name === 'style') this.style.cssText = value
  else Element.prototype.setAttribute.call(this, name, value)
}

function createStyle(): HTMLElement {
  // An element of another kind: even an empty style element is refused when it enters the page.
  const element = Document.prototype.createElement.call(document, 'template')
  const sheet = new CSSStyleSheet()
  document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet]
  Object.defineProperty(element, 'textContent', {
    set: (text: string) => sheet.replaceSync(text),
  })
  element.remove = () => {
    document.adoptedStyleSheets = document.adoptedStyleSheets.filter((each) => each !== sheet)
    Element.prototype.remove.call(element)
  }
  return element
}
