// What one event of a stream looks like, for the examples of the OpenAPI document.

/** As a form of an answer: `id` is what `Last-Event-ID` resumes after, where the stream can be resumed. */
export const eventStreamOf = (event: string, data: object, id?: string | number) => ({
  'text/event-stream': `${id === undefined ? '' : `id: ${id}\n`}event: ${event}\ndata: ${JSON.stringify(data)}\n\n`,
})
