import assert from 'node:assert/strict'
import { test } from 'node:test'
import { nameOf, parseBucket } from './bucket.ts'

test('uses a bucket at AWS unless an endpoint is set, with its name in the host name or the path', () => {
  const cases: [text: string, origin: string, path: string, prefix: string][] = [
    ['s3://blobs', 'https://blobs.s3.us-east-1.amazonaws.com', '', ''],
    ['s3://blobs/a/b/?region=eu-central-1', 'https://blobs.s3.eu-central-1.amazonaws.com', '', 'a/b/'],
    ['s3://blobs?style=path', 'https://s3.us-east-1.amazonaws.com', '/blobs', ''],
    ['s3://blobs/p?endpoint=http://127.0.0.1:9000', 'http://127.0.0.1:9000', '/blobs', 'p/'],
    ['s3://blobs?endpoint=https://s3.example.com/&style=host', 'https://blobs.s3.example.com', '', ''],
  ]
  for (const [text, origin, path, prefix] of cases) {
    const bucket = parseBucket(text)
    assert.deepEqual([bucket.origin, bucket.path, bucket.prefix], [origin, path, prefix], text)
  }
  assert.equal(nameOf(parseBucket('s3://blobs/a/b?region=x')), 's3://blobs/a/b')
  assert.equal(parseBucket('s3://blobs?timeout=2.5').timeoutMs, 2500)
})

test('refuses an invalid bucket setting, and names the reason', () => {
  for (const [text, reason] of [
    ['s3://', /./],
    ['s3://key:secret@blobs', /without a port and credentials/],
    ['s3://Blobs_1', /must name a bucket/],
    ['s3://blobs/a%20b', /must have a prefix/],
    ['s3://blobs/c', /must have a prefix without c, sha256, sha512, uploads/],
    ['s3://blobs/team/sha256/a', /must have a prefix without/],
    ['s3://blobs?regoin=x', /has the unknown parameter regoin; known are endpoint, public, region/],
    ['s3://blobs?region=EU%20west', /must have a region/],
    ['s3://blobs?endpoint=ftp://x', /must have an endpoint/],
    ['s3://blobs?endpoint=https://x/path', /must have an endpoint/],
    ['s3://blobs?endpoint=https://a:b@x', /must have an endpoint/],
    ['s3://blobs?style=virtual', /must have the style/],
    ['s3://blobs?timeout=0', /must have a timeout/],
  ] as const) {
    assert.throws(() => parseBucket(text), reason, text)
  }
})
