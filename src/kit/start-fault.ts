/** What keeps the service from starting and lies outside of it: a sentence for whoever starts it, who can mend it. */
export class StartFault extends Error {}
