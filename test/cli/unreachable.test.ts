import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ApiError, send } from '#cli/framework/api-client.ts'
import { unreachableReason } from '#cli/framework/unreachable.ts'
import { codes } from '#lib/errors.ts'

const failed = (code: string | undefined, message = 'no') => Object.assign(new Error(message), code && { code })

test('gives different reasons for a refused connection, an unknown host name and an untrusted certificate', () => {
  for (const [code, says, next] of [
    ['ECONNREFUSED', /^no server listens there \(ECONNREFUSED\)$/, /check that the server runs/],
    ['ENOTFOUND', /^the host name does not exist \(ENOTFOUND\)$/, /the host name in --api or PINFOLD_API/],
    ['EAI_AGAIN', /^the DNS server does not answer \(EAI_AGAIN\)$/, /try again/],
    ['EHOSTUNREACH', /^the host does not answer/, /firewall/],
    ['ECONNRESET', /closed without a response/, /begin with https/],
    ['ERR_SSL_WRONG_VERSION_NUMBER', /does not use TLS/, /http:\/\//],
    ['DEPTH_ZERO_SELF_SIGNED_CERT', /this machine does not trust its certificate/, /NODE_EXTRA_CA_CERTS/],
    ['ERR_TLS_CERT_ALTNAME_INVALID', /for another host name/, /a host name of the certificate/],
  ] as const) {
    for (const error of [failed(code), new TypeError('fetch failed', { cause: failed(code) })]) {
      const why = unreachableReason(error)
      assert.match(why.says, says)
      assert.match(why.next, next)
    }
  }
  assert.deepEqual(unreachableReason(failed('EWHATEVER')), { says: 'EWHATEVER', next: '' })
  assert.deepEqual(unreachableReason(failed(undefined, 'the response is too large')), {
    says: 'the response is too large',
    next: '',
  })
})

test('the error of a failed request has the next step', async () => {
  const request = send('GET', new URL('http://127.0.0.1:9/ping/v2/ping'), 'token')
  await assert.rejects(request, (error) => {
    assert.ok(error instanceof ApiError)
    assert.equal(error.code, codes.UNAVAILABLE.number)
    assert.match(error.message, /^http:\/\/127\.0\.0\.1:9 cannot be reached: no server listens there .*; check that/)
    return true
  })
})
