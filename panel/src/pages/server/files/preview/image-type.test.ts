import assert from 'node:assert/strict'
import { test } from 'node:test'
import { imageTypeOf } from './image-type.ts'

const bytes = (text: string) => Uint8Array.from(text, (char) => char.charCodeAt(0))

test('a picture is known by its bytes', () => {
  assert.equal(imageTypeOf(bytes('\x89PNG\r\n\x1a\n…')), 'image/png')
  assert.equal(imageTypeOf(bytes('RIFF....WEBPVP8 ')), 'image/webp')
})

test('what could hold a script is no picture, whatever it is called', () => {
  for (const text of ['<svg xmlns="http://www.w3.org/2000/svg">', '<!doctype html>', '%PDF-1.7', '', 'GIF']) {
    assert.equal(imageTypeOf(bytes(text)), null)
  }
})
