// The compiler of TypeScript 5 as a library, under the name that the generator asks for. Its own package would bring a
// second `tsc`.
import { ts } from '@ts-morph/common'

export default ts
