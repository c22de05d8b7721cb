// Examples of the AWS documentation: "Signature Calculations for the Authorization Header" and "Authenticating Requests: Using
// Query Parameters".
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createSigner, encodePath, sha256, type Unsigned } from './sign.ts'

const credentials = {
  accessKeyId: 'AKIAIOSFODNN7EXAMPLE',
  secretAccessKey: 'wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY',
}
const host = 'examplebucket.s3.amazonaws.com'
const now = new Date('2013-05-24T00:00:00Z')
const signer = createSigner('us-east-1')

test('signs request headers as in the AWS examples', () => {
  const get: Unsigned = { method: 'GET', host, path: '/test.txt', query: [], headers: { range: 'bytes=0-9' } }
  const put: Unsigned = {
    method: 'PUT',
    host,
    path: encodePath('/test$file.text'),
    query: [],
    headers: { date: 'Fri, 24 May 2013 00:00:00 GMT', 'x-amz-storage-class': 'REDUCED_REDUNDANCY' },
  }
  const lifecycle: Unsigned = { method: 'GET', host, path: '/', query: [['lifecycle', '']], headers: {} }
  const query = [['prefix', 'J'] as const, ['max-keys', '2'] as const]
  const list: Unsigned = { method: 'GET', host, path: '/', query, headers: {} }
  const cases: [Unsigned, body: string, names: string, signature: string][] = [
    [
      get,
      '',
      'host;range;x-amz-content-sha256;x-amz-date',
      'f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41',
    ],
    [
      put,
      'Welcome to Amazon S3.',
      'date;host;x-amz-content-sha256;x-amz-date;x-amz-storage-class',
      '98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd',
    ],
    [
      lifecycle,
      '',
      'host;x-amz-content-sha256;x-amz-date',
      'fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543',
    ],
    [
      list,
      '',
      'host;x-amz-content-sha256;x-amz-date',
      '34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7',
    ],
  ]
  for (const [request, body, names, signature] of cases) {
    const { authorization } = signer.headersFor(request, credentials, sha256(body), now)
    const scope = `${credentials.accessKeyId}/20130524/us-east-1/s3/aws4_request`
    assert.equal(authorization, `AWS4-HMAC-SHA256 Credential=${scope}, SignedHeaders=${names}, Signature=${signature}`)
  }
})

test('signs a URL as in the AWS example', () => {
  const get: Unsigned = { method: 'GET', host, path: '/test.txt', query: [], headers: {} }
  assert.equal(
    signer.queryFor(get, credentials, 86_400, now),
    'X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F20130524%2Fus-east-1%2Fs3%2Faws4_request&X-Amz-Date=20130524T000000Z&X-Amz-Expires=86400&X-Amz-SignedHeaders=host&X-Amz-Signature=aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404',
  )
})

test('uses a different key for a different day, secret or session', () => {
  const get: Unsigned = { method: 'GET', host, path: '/', query: [], headers: {} }
  const of = (other: object, at = now) =>
    signer.headersFor(get, { ...credentials, ...other }, sha256(''), at).authorization!.split('Signature=')[1]
  const first = of({})
  const others = [of({ secretAccessKey: 'other' }), of({}, new Date('2013-05-25T00:00:00Z')), of({ sessionToken: 'a' })]
  assert.equal(new Set([first, ...others]).size, 4)
  assert.equal(of({}), first)
})
