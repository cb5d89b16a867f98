// xterm.js styles itself by style elements, which a strict Content-Security-Policy refuses. This document gives it elements whose
// text goes into constructed style sheets instead: scripts may make those.

export function createCspDocument(): Document {
  return new Proxy(document, {
    get(target, name) {
      if (name === 'createElement') {
        return (tag: string, options?: ElementCreationOptions) =>
          tag === 'style' ? createStyle() : target.createElement(tag, options)
      }
      const value: unknown = Reflect.get(target, name, target)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
}

function createStyle(): HTMLStyleElement {
  const element = document.createElement('style')
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
