// Tests of the code that finds the image of a statement.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { aboutImage } from './vex-about.ts'

const digest = `sha256:${'a'.repeat(64)}`
const other = `sha256:${'b'.repeat(64)}`
const about = (products: string[], within?: string[]) => aboutImage({ products, ...(within && { within }) }, digest)

test('matches an image by digest, with or without an escaped colon, and ignores images with another or no name', () => {
  const meant = { image: true, parts: [] }
  assert.deepEqual(about([]), meant)
  assert.deepEqual(about([`pkg:oci/app@${digest}`]), meant)
  assert.deepEqual(about([`pkg:oci/app@${digest.replace(':', '%3A')}?repository_url=r.example.com/app`]), meant)
  assert.deepEqual(about([`pkg:docker/app@${digest.replace(':', '%3a')}`]), meant)
  assert.deepEqual(about([`r.example.com/app@${digest}`]), meant)
  const notMeant = { image: false, parts: [] }
  assert.deepEqual(about([`pkg:oci/app@${other}`]), notMeant)
  assert.deepEqual(about([`pkg:oci/app@${other.replace(':', '%3A')}`]), notMeant)
  assert.deepEqual(about([`pkg:oci/app@${other}?tag=${digest}`]), notMeant)
  assert.deepEqual(about(['pkg:oci/other-app']), notMeant)
  assert.deepEqual(about(['pkg:docker/x@1.2']), notMeant)
})

test('selects this image from several, and only its own parts', () => {
  assert.deepEqual(about([`pkg:oci/app@${other}`, `pkg:oci/app@${digest}`]), { image: true, parts: [] })
  const parts = ['pkg:apk/alpine/zlib', 'pkg:apk/alpine/musl', 'pkg:npm/left']
  assert.deepEqual(about(parts, [`pkg:oci/app@${other}`, `pkg:oci/app@${digest}`, '']), {
    image: false,
    parts: ['pkg:apk/alpine/musl', 'pkg:npm/left'],
  })
  assert.deepEqual(about(['pkg:npm/left'], ['pkg:oci/app']), { image: false, parts: [] })
  assert.deepEqual(about(['https://products.example.com/app']).parts, ['https://products.example.com/app'])
})
