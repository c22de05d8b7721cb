// AWS identities: the client signs an AWS request without sending it, and exchanges the request for a token of this server.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { create } from '@bufbuild/protobuf'
import { createAwsCallers, maxAsking } from '#clouds/amazon-callers.ts'
import { SecurityTokenService } from '#gen/pinfold/oidc/v1/security_token_pb.ts'
import { type Outgoing, OutgoingError } from '#lib/net/outgoing.ts'
import {
  blobOf,
  type Signing,
  signatureOf,
  signCallerIdentity,
  startAwsSts,
  textOf,
  type Written,
} from '../support/aws.ts'
import { claimsOf, outside, searchOf } from '../support/exchange.ts'
import { assertDenied, ok } from '../support/expect.ts'
import { startIssuer } from '../support/fake-issuer.ts'
import { type Answer, type Json, roleUids, startPinfold } from '../support/pinfold.ts'
import { openGrpc } from '../support/raw-grpc.ts'
import { noMinutePasses } from '../support/times.ts'

const account = '123456789012'
const arn = `arn:aws:sts::${account}:assumed-role/builder/i-0abc`
const builder = {
  keyId: 'ASIABUILDER00001',
  secret: 'wJalrXUtnFEMI/K7',
  session: 'FwoGZXIvYXdz+/=',
  account,
  arn,
  userId: 'AROAEXAMPLE:i-0abc',
}
const user = {
  keyId: 'AKIAUSER00000001',
  secret: 'sEcReT',
  account,
  arn: `arn:aws:iam::${account}:user/jane`,
  userId: 'AIDAJANE',
}
const foreign = {
  ...user,
  keyId: 'AKIAFOREIGN00001',
  account: '210987654321',
  arn: 'arn:aws:iam::210987654321:user/jane',
}

let offset = 0
const aws = await startAwsSts([builder, user, foreign])
const pinfold = await startPinfold({ ...outside, awsStsUrl: aws.url, clock: () => new Date(Date.now() + offset) })
const org = await pinfold.seed.group()
const { url } = pinfold
const make = (awsIdentity: Json) =>
  pinfold.seed.identity(org.uid, { claimMatch: undefined, awsIdentity: { awsAccount: account, ...awsIdentity } })
const { uid } = await make({ arn })
await pinfold.seed.binding(org.uid, uid, roleUids.viewer)
after(async () => {
  await pinfold[Symbol.asyncDispose]()
  await aws[Symbol.asyncDispose]()
})

const sign = (change: Partial<Signing> = {}): Written =>
  signCallerIdentity({ host: aws.host, audience: url, identity: uid, credentials: builder, ...change })
const exchange = (blob: string, identity = uid): Promise<Answer> =>
  pinfold.withToken(blob).call('POST', `/sts/exchange?${searchOf({ aud: url, identity })}`)
const assertRefused = (answer: Answer, why: string): void => {
  assert.deepEqual([answer.status, answer.body.code], [401, 16], `${why}: ${answer.text}`)
  assert.match(answer.body.message, /^the token is not accepted/, why)
}
const assertUnavailable = (answer: Answer, message: string): void => {
  assert.deepEqual([answer.status, answer.body.code, answer.body.message], [503, 14, message], answer.text)
}
/** Number of requests to AWS during the work. */
async function asked(work: () => Promise<void>): Promise<number> {
  const before = aws.seen.length
  await work()
  return aws.seen.length - before
}

test('vendor headers bind an AWS signature to a server that uses the names of the vendor', async () => {
  const acme = blobOf(sign({ product: 'Acme' }))
  assertRefused(await exchange(acme), 'nobody’s names')
  await using other = await startPinfold({ ...outside, awsStsUrl: aws.url, compatVendor: 'acme' })
  const group = await other.seed.group()
  const awsIdentity = { awsAccount: account, arn }
  const identity = await other.seed.identity(group.uid, { claimMatch: undefined, awsIdentity })
  const search = searchOf({ aud: other.url, identity: identity.uid })
  const codeFor = async (product: string, more: Partial<Signing> = {}) => {
    const blob = blobOf(sign({ audience: other.url, identity: identity.uid, now: new Date(), product, ...more }))
    return (await other.withToken(blob).call('POST', `/sts/exchange?${search}`)).status
  }
  for (const product of ['Acme', 'Pinfold']) assert.equal(await codeFor(product), 200, product)
  assert.equal(await codeFor('Other'), 401)
  assert.equal(await codeFor('Acme', { headers: { 'Pinfold-Audience': other.url } }), 401, 'not both')
})

test('the signatures of these tests match the example of AWS', () => {
  const request = {
    method: 'GET',
    target: '/',
    headers: { host: 'example.amazonaws.com', 'x-amz-date': '20150830T123600Z' },
    body: '',
  }
  const signed = {
    names: ['host', 'x-amz-date'],
    scope: '20150830/us-east-1/service/aws4_request',
    date: '20150830T123600Z',
  }
  assert.equal(
    signatureOf('wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY', request, signed),
    '5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31',
  )
})

test('exchanges a signed AWS request for a token of the identity, which names the AWS caller', async () => {
  const answer = ok(await exchange(blobOf(sign())))
  const { sub, aud, act } = claimsOf(answer.token)
  assert.deepEqual([sub, aud], [uid, url])
  assert.deepEqual(act, { iss: aws.url, sub: builder.userId, aud: url, aws_account: account, aws_arn: arn })
  const job = pinfold.withToken(answer.token)
  assert.equal(ok(await job.get(`/iam/v2/groups/${org.uid}`)).uid, org.uid)
  assertDenied(await job.post(`/iam/v2/groups/${org.uid}`, { name: 'x' }))

  const { method, target, headers, body } = aws.seen.at(-1)!
  assert.deepEqual([method, target, body], ['POST', '/?Action=GetCallerIdentity&Version=2011-06-15', ''])
  assert.deepEqual([headers.host, headers['pinfold-identity'], headers.accept], [aws.host, uid, 'application/json'])
  assert.notEqual(headers['user-agent'], 'Go-http-client/1.1')
})

test('accepts both base64 alphabets, with or without padding, and line ends as shells write them', async () => {
  const texts = [textOf(sign()), textOf(sign(), '\n'), textOf(sign({ headers: { 'X-Amz-User-Agent': '>>>???~~~' } }))]
  for (const text of texts) {
    const padded = blobOf(text)
    const standard = Buffer.from(text).toString('base64')
    for (const blob of [padded, standard, padded.replace(/=+$/, ''), standard.replace(/=+$/, '')])
      ok(await exchange(blob))
  }
})

test('accepts the AWS call in the body, as in a form', async () => {
  const body = 'Action=GetCallerIdentity&Version=2011-06-15'
  const headers = { 'Content-Type': 'application/x-www-form-urlencoded; charset=utf-8' }
  ok(await exchange(blobOf(sign({ target: '/', body, headers }))))
  assert.equal(aws.seen.at(-1)!.body, body)
  ok(await exchange(blobOf(sign({ target: '/', body, headers, unsigned: ['content-type'] }))))
})

test('gRPC and the OAuth endpoint exchange AWS requests like REST', async () => {
  using grpc = openGrpc(pinfold.port)
  const desc = SecurityTokenService.method.exchange
  const call = (token: string) => grpc.call(desc, create(desc.input, { aud: [url], identity: uid }), { token })
  assert.equal((await call(blobOf(sign()))).code, 0)
  assert.equal((await call(blobOf(sign({ credentials: foreign })))).code, 7)
  assert.equal((await call(blobOf(sign({ audience: 'x' })))).code, 16)
  const form = new URLSearchParams({
    grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
    subject_token: Buffer.from(textOf(sign())).toString('base64'),
    subject_token_type: 'urn:ietf:params:oauth:token-type:access_token',
    identity: uid,
  })
  const headers = { 'content-type': 'application/x-www-form-urlencoded' }
  ok(await pinfold.anonymous.call('POST', '/oauth/token', form.toString(), headers))
})

test('account, ARN and user id must match completely, exactly or by pattern, if the identity names them', async () => {
  const whole = `arn:aws:sts::${account}:assumed-role/builder/`
  const cases: [identity: Json, builder: number, user: number][] = [
    [{ arn }, 200, 403],
    [{ arnPattern: `${whole}.*` }, 200, 403],
    [{ arnPattern: whole }, 403, 403],
    [{ arnPattern: 'assumed-role/builder' }, 403, 403],
    [{ arnPattern: '.*' }, 200, 200],
    [{ userId: user.userId }, 403, 200],
    [{ userIdPattern: 'AROAEXAMPLE:i-.*' }, 200, 403],
    [{ arn, userId: builder.userId }, 200, 403],
    [{ arn, userId: user.userId }, 403, 403],
    [{ arn: arn.toUpperCase() }, 403, 403],
  ]
  for (const [awsIdentity, ofBuilder, ofUser] of cases) {
    const identity = (await make(awsIdentity)).uid
    for (const [credentials, status] of [
      [builder, ofBuilder],
      [user, ofUser],
      [foreign, 403],
    ] as const) {
      const answer = await exchange(blobOf(sign({ identity, credentials })), identity)
      assert.equal(answer.status, status, `${JSON.stringify(awsIdentity)} ${credentials.arn}: ${answer.text}`)
    }
  }
})

test('an AWS identity created in version 1 matches the same requests', async () => {
  const owner = await pinfold.as((await pinfold.seed.member(org.uid, roleUids.owner)).uid)
  const awsIdentity = { awsAccount: account, arnPattern: '.*builder.*', userIdPattern: '.*' }
  const { id } = ok(await owner.post(`/iam/v1/identities/${org.uid}`, { name: 'older', awsIdentity }))
  ok(await exchange(blobOf(sign({ identity: id })), id))
  assertDenied(await exchange(blobOf(sign({ identity: id, credentials: user })), id))
})

test('accepts a signed request only for the identity and the audience in it', async () => {
  const other = (await make({ arn })).uid
  const missing = `${org.uid}/0123456789abcdef`
  const claims = await pinfold.seed.identity(org.uid)
  const times = await asked(async () => {
    assertDenied(await exchange(blobOf(sign()), other))
    assertDenied(await exchange(blobOf(sign({ identity: missing })), missing))
    assertDenied(await exchange(blobOf(sign({ identity: claims.uid })), claims.uid))
    // Without an identity, the exchange would look for a person.
    assertDenied(await exchange(blobOf(sign()), ''))
    assertDenied(await exchange(blobOf(sign({ identity: '' })), ''))
    for (const audience of ['', 'https://elsewhere.example.com', `${url}/`, 'sts.amazonaws.com']) {
      assertRefused(await exchange(blobOf(sign({ audience }))), audience)
    }
  })
  assert.equal(times, 0)
  for (const audience of [url, new URL(url).host, new URL(url).hostname]) ok(await exchange(blobOf(sign({ audience }))))

  await using issuer = await startIssuer()
  assertDenied(await exchange(await issuer.token({ sub: 'x', aud: url })))
})

test('accepts a signature from five minutes in the future to fifteen minutes in the past', async () => {
  const minute = 60_000
  const start = Math.floor(Date.now() / 1000) * 1000
  const at = async (age: number) => {
    offset = start + age - Date.now() + 1000
    return exchange(blobOf(sign({ now: new Date(start) })))
  }
  try {
    ok(await at(14 * minute))
    assertRefused(await at(15 * minute + 1), 'old')
    ok(await at(-4 * minute))
    assertRefused(await at(-6 * minute), 'from ahead')
    offset = 0
    const [later] = [new Date(Date.now() + 24 * 3600 * 1000)]
    assertRefused(await exchange(blobOf(sign({ now: later }))), 'tomorrow')
  } finally {
    offset = 0
  }
})

/** Signs a request and then changes it. */
const edit = (change: (written: Written) => Partial<Written>, of: Partial<Signing> = {}): Written => {
  const written = sign(of)
  return { ...written, ...change(written) }
}
const withHeader = (name: string, value: string | undefined, of?: Partial<Signing>): Written =>
  edit(({ headers }) => {
    const rest = headers.filter(([one]) => one.toLowerCase() !== name.toLowerCase())
    return { headers: value === undefined ? rest : [...rest, [name, value]] }
  }, of)
const authorized = (change: (authorization: string) => string): Written =>
  edit(({ headers }) => ({
    headers: headers.map(([name, value]) => [name, name === 'Authorization' ? change(value) : value]),
  }))
const line = (text: string, of?: Partial<Signing>) => edit(() => ({ line: text }), of)
const twice = (name: string, value?: string): Written =>
  edit(({ headers }) => {
    const [, there] = headers.find(([one]) => one.toLowerCase() === name.toLowerCase())!
    return { headers: [...headers, [name.toLowerCase(), value ?? there]] }
  })

const form = { target: '/', headers: { 'Content-Type': 'application/x-www-form-urlencoded' } }
const call = 'Action=GetCallerIdentity&Version=2011-06-15'

/** Requests that are refused without asking AWS. */
const wrong: Record<string, Written | string> = {
  'another method': sign({ method: 'GET' }),
  'a put': sign({ method: 'PUT' }),
  'another path': sign({ target: `/x?${call}` }),
  'two slashes': sign({ target: `//?${call}` }),
  'a path up': sign({ target: `/../?${call}` }),
  'a whole URL': line(`POST http://attacker.example/?${call} HTTP/1.1`),
  'the real host in the line': line(`POST ${aws.url}/?${call} HTTP/1.1`),
  'an authority': line(`POST attacker.example:443 HTTP/1.1`),
  'a fragment': line(`POST /?${call}#x HTTP/1.1`),
  'a space in the target': line(`POST /?${call} x HTTP/1.1`),
  'another protocol': line(`POST /?${call} HTTP/2`),
  'no protocol': line(`POST /?${call}`),
  'another action': sign({ target: '/?Action=AssumeRole&Version=2011-06-15' }),
  'another version': sign({ target: '/?Action=GetCallerIdentity&Version=2010-05-08' }),
  'no version': sign({ target: '/?Action=GetCallerIdentity' }),
  'two actions': sign({ target: `/?${call}&Action=AssumeRole` }),
  'the same action twice': sign({ target: `/?${call}&Action=GetCallerIdentity` }),
  'one parameter more': sign({ target: `/?${call}&RoleArn=x` }),
  'a signature in the query': sign({ target: `/?${call}&X-Amz-Signature=00` }),
  'an action in the query and in the body': sign({ ...form, target: `/?${call}`, body: call }),
  'another action in the body': sign({ ...form, body: 'Action=AssumeRole&Version=2011-06-15' }),
  'a body of another type': sign({ target: '/', body: call, headers: { 'Content-Type': 'application/json' } }),
  'a body without a type': sign({ target: '/', body: call }),
  'a long body': sign({ ...form, body: `${call}&${'x'.repeat(2000)}` }),
  'another length of the body': withHeader('Content-Length', '5'),
  'a length that is none': withHeader('Content-Length', 'x'),
  chunks: withHeader('Transfer-Encoding', 'chunked'),
  'another host': sign({ host: 'sts.attacker.example' }),
  'the host of AWS, which is not the one here': sign({ host: 'sts.amazonaws.com' }),
  'a longer host': sign({ host: `${aws.host}.attacker.example` }),
  'no host': withHeader('Host', undefined),
  'two hosts': twice('Host', 'attacker.example'),
  'two authorizations': twice('Authorization'),
  'two dates': twice('X-Amz-Date'),
  'two audiences': twice('Pinfold-Audience', 'x'),
  'two identities': twice('Pinfold-Identity', `${org.uid}/0123456789abcdef`),
  'any header twice': twice('Accept'),
  'no authorization': withHeader('Authorization', undefined),
  'no date': withHeader('X-Amz-Date', undefined),
  'no audience': withHeader('Pinfold-Audience', undefined),
  'no identity': withHeader('Pinfold-Identity', undefined),
  'a host that is not signed': sign({ unsigned: ['host'] }),
  'a date that is not signed': sign({ unsigned: ['x-amz-date'] }),
  'an audience that is not signed': sign({ unsigned: ['pinfold-audience'] }),
  'an identity that is not signed': sign({ unsigned: ['pinfold-identity'] }),
  'a session token that is not signed': sign({ unsigned: ['x-amz-security-token'] }),
  'headers of another product': sign({ product: 'Other' }),
  'one header of another product': withHeader('Other-Audience', url, { headers: { 'Pinfold-Audience': undefined } }),
  'a signed header that nobody knows': sign({ headers: { 'X-Forwarded-Host': 'x' } }),
  'a signed header that changes the connection': sign({ headers: { Connection: 'upgrade' } }),
  'a signed target': sign({ headers: { 'X-Amz-Target': 'x' } }),
  'another kind of answer': sign({ headers: { Accept: 'text/xml' } }),
  'another region': sign({ region: 'eu-west-1' }),
  'another service': sign({ service: 'iam' }),
  'another algorithm': authorized((one) => one.replace('AWS4-HMAC-SHA256', 'AWS4-ECDSA-P256-SHA256')),
  'another day in the scope': authorized((one) => one.replace(/\/\d{8}\//, '/20200101/')),
  'a signature that is none': authorized((one) => one.replace(/Signature=\w+/, 'Signature=zz')),
  'no signed headers': authorized((one) => one.replace(/SignedHeaders=[^,]+/, 'SignedHeaders=')),
  'a header signed twice': authorized((one) => one.replace('SignedHeaders=', 'SignedHeaders=host;')),
  'a signed header that is not there': authorized((one) =>
    one.replace('SignedHeaders=', 'SignedHeaders=content-type;'),
  ),
  'a bearer': withHeader('Authorization', 'Bearer x'),
  'a date of another form': sign({ headers: { 'X-Amz-Date': 'Sun, 22 Nov 2026 16:00:00 GMT' } }),
  'a date that is none': sign({ headers: { 'X-Amz-Date': '20269999T999999Z' } }),
  'a folded header': textOf(sign()).replace('\r\nAccept:', '\r\n x\r\nAccept:'),
  'a header without a name': textOf(sign()).replace('Accept:', ':'),
  'a space after a name': textOf(sign()).replace('Accept:', 'Accept :'),
  'a lone carriage return': textOf(sign()).replace('\r\nAccept', '\rAccept'),
  'a control character': textOf(sign()).replace('Go-http', 'Go\u0000http'),
  'what is not ASCII': textOf(sign()).replace('Go-http', 'Gö-http'),
  'many headers': edit(({ headers }) => ({
    headers: [...headers, ...Array.from({ length: 30 }, (_, i): [string, string] => [`X-${i}`, '1'])],
  })),
  'two requests': textOf(sign()) + textOf(sign()),
  'no end of the headers': textOf(sign()).trimEnd(),
  nothing: 'x',
  JSON: '{"Action":"GetCallerIdentity"}',
}

test('refuses every request except GetCallerIdentity, without asking AWS', async () => {
  const times = await asked(async () => {
    for (const [why, request] of Object.entries(wrong)) assertRefused(await exchange(blobOf(request)), why)
    const blob = blobOf(sign())
    for (const text of ['*', `${blob}=`, `=${blob}`, blob.slice(1), `${blob}AAAA`, `${blob}!`, 'A', 'AAAA']) {
      if (text !== blob) assertRefused(await exchange(text), text.slice(0, 20))
    }
  })
  assert.equal(times, 0)
})

test('passes on to AWS the requests that only AWS can check, and refuses what AWS refuses', async () => {
  const forged: Record<string, Written> = {
    'another audience': withHeader('Pinfold-Audience', url, { audience: 'https://elsewhere.example.com' }),
    'another identity': withHeader('Pinfold-Identity', uid, { identity: `${org.uid}/0123456789abcdef` }),
    'another time': withHeader('X-Amz-Date', new Date().toISOString().replace(/[-:]|\.\d+/g, ''), {
      now: new Date(Date.now() - 60_000),
    }),
    'another session': withHeader('X-Amz-Security-Token', 'other'),
    'another key': authorized((one) => one.replace(builder.keyId, user.keyId)),
    'another signature': authorized((one) => one.replace(/Signature=\w+/, `Signature=${'0'.repeat(64)}`)),
    'a key that nobody has': sign({ credentials: { keyId: 'AKIANOBODY000001', secret: 'x' } }),
    'another secret': sign({ credentials: { ...builder, secret: 'guess' } }),
  }
  for (const [why, request] of Object.entries(forged)) {
    const times = await asked(async () => assertRefused(await exchange(blobOf(request)), why))
    assert.equal(times, 1, why)
  }
})

test('does not pass unsigned headers on to AWS', async () => {
  ok(await exchange(blobOf(withHeader('X-Secret', 'of the client'))))
  assert.equal(aws.seen.at(-1)!.headers['x-secret'], undefined)
})

test('refuses the exchange if the answer of AWS is malformed or missing', async () => {
  const good = (change: Json = {}) => ({
    GetCallerIdentityResponse: {
      GetCallerIdentityResult: { Account: account, Arn: arn, UserId: builder.userId, ...change },
    },
  })
  const answers = {
    'a redirect': { status: 302, body: '', headers: { location: `${aws.url}/elsewhere` } },
    'a success without content': { status: 204, body: '' },
    XML: { status: 200, body: `<Account>${account}</Account><Arn>${arn}</Arn>` },
    'something else': { status: 200, body: '[]' },
    'no account': { status: 200, body: JSON.stringify(good({ Account: undefined })) },
    'a number': { status: 200, body: JSON.stringify(good({ Account: 123456789012 })) },
    'no user': { status: 200, body: JSON.stringify(good({ UserId: '' })) },
    'a long ARN': { status: 200, body: JSON.stringify(good({ Arn: `${arn}${'x'.repeat(3000)}` })) },
  }
  try {
    for (const [why, answer] of Object.entries(answers)) {
      aws.answer = answer
      const times = await asked(async () => assertRefused(await exchange(blobOf(sign())), why))
      assert.equal(times, 1, why)
    }
    aws.answer = { status: 500, body: 'secret text' }
    assertUnavailable(await exchange(blobOf(sign())), 'AWS responded with HTTP 500')
    aws.answer = { status: 200, body: JSON.stringify({ ...good(), more: 'x'.repeat(20_000) }) }
    assertUnavailable(
      await exchange(blobOf(sign())),
      'the signed request cannot be verified, because AWS does not respond',
    )
    aws.answer = { status: 200, body: JSON.stringify(good()) }
    ok(await exchange(blobOf(sign())))
    aws.answer = { status: 200, body: JSON.stringify(good({ Account: foreign.account })) }
    assertDenied(await exchange(blobOf(sign())))
  } finally {
    aws.answer = undefined
  }
  await using alone = await startPinfold({ ...outside, awsStsUrl: 'http://127.0.0.1:1' })
  const group = await alone.seed.group()
  const lost = await alone.seed.identity(group.uid, {
    claimMatch: undefined,
    awsIdentity: { awsAccount: account, arn },
  })
  const blob = blobOf(sign({ host: '127.0.0.1:1', audience: alone.url, identity: lost.uid }))
  const search = searchOf({ aud: alone.url, identity: lost.uid })
  const answer = await alone.withToken(blob).call('POST', `/sts/exchange?${search}`)
  assertUnavailable(answer, 'the signed request cannot be verified, because AWS does not respond')
})

test('counts all AWS exchanges of an organization for one limit', async () => {
  await using limited = await startPinfold({ ...noMinutePasses, ...outside, awsStsUrl: aws.url, exchangesPerIssuer: 2 })
  const group = await limited.seed.group()
  const made = await Promise.all(
    [1, 2, 3].map(() =>
      limited.seed.identity(group.uid, { claimMatch: undefined, awsIdentity: { awsAccount: account, arn } }),
    ),
  )
  const answers: Answer[] = []
  for (const identity of made) {
    const blob = blobOf(sign({ audience: limited.url, identity: identity.uid }))
    const search = searchOf({ aud: limited.url, identity: identity.uid })
    answers.push(await limited.withToken(blob).call('POST', `/sts/exchange?${search}`))
  }
  assert.deepEqual(
    answers.map(({ status }) => status),
    [200, 200, 429],
  )
  assert.deepEqual([answers[2]!.body.code, answers[2]!.body.details[0].reason], [8, 'RATE_LIMITED'])
})

test('limits forged requests for an identity separately from its valid exchanges', async () => {
  const trustedProxies = ['127.0.0.1']
  await using limited = await startPinfold({
    ...noMinutePasses,
    ...outside,
    awsStsUrl: aws.url,
    exchangesPerIdentity: 2,
    trustedProxies,
  })
  const group = await limited.seed.group()
  const identity = await limited.seed.identity(group.uid, {
    claimMatch: undefined,
    awsIdentity: { awsAccount: account, arn },
  })
  const from = async (source: string, credentials: typeof user) => {
    const blob = blobOf(sign({ audience: limited.url, identity: identity.uid, credentials }))
    const path = `/sts/exchange?${searchOf({ aud: limited.url, identity: identity.uid })}`
    const headers = { 'x-forwarded-for': source }
    return (await limited.withToken(blob).call('POST', path, undefined, headers)).status
  }
  const forged = { ...builder, secret: 'guessed' }
  const times = await asked(async () => {
    for (const expected of [401, 401, 429, 429]) assert.equal(await from('203.0.113.9', forged), expected)
  })
  assert.equal(times, 2, 'AWS is asked no more')
  assert.equal(await from('203.0.113.10', builder), 200)
})

test('after too many wrong requests, refuses a network before asking AWS', async () => {
  const trustedProxies = ['127.0.0.1']
  await using limited = await startPinfold({
    ...noMinutePasses,
    ...outside,
    awsStsUrl: aws.url,
    refusalsPerSource: 2,
    trustedProxies,
  })
  const group = await limited.seed.group()
  const awsIdentity = { awsAccount: account, arn }
  const identity = await limited.seed.identity(group.uid, { claimMatch: undefined, awsIdentity })
  const from = async (source: string, credentials: typeof user) => {
    const blob = blobOf(sign({ audience: limited.url, identity: identity.uid, credentials }))
    const path = `/sts/exchange?${searchOf({ aud: limited.url, identity: identity.uid })}`
    return (await limited.withToken(blob).call('POST', path, undefined, { 'x-forwarded-for': source })).status
  }
  const forged = { ...builder, secret: 'guessed' }
  const times = await asked(async () => {
    for (const expected of [401, 401, 429, 429]) assert.equal(await from('203.0.113.9', forged), expected)
  })
  assert.equal(times, 2)
  assert.equal(await from('203.0.113.10', builder), 200)
})

test('asks AWS at most sixty times a minute for one identity from one network', async () => {
  const settings = { ...outside, awsStsUrl: aws.url, trustedProxies: ['127.0.0.1'], monotonic: () => 0 }
  await using limited = await startPinfold(settings)
  const group = await limited.seed.group()
  const awsIdentity = { awsAccount: account, arn }
  const identity = await limited.seed.identity(group.uid, { claimMatch: undefined, awsIdentity })
  const blob = blobOf(sign({ audience: limited.url, identity: identity.uid }))
  const from = async (source: string) => {
    const path = `/sts/exchange?${searchOf({ aud: limited.url, identity: identity.uid })}`
    return (await limited.withToken(blob).call('POST', path, undefined, { 'x-forwarded-for': source })).status
  }
  for (let i = 0; i < 60; i++) assert.equal(await from('203.0.113.9'), 200)
  assert.equal(await from('203.0.113.9'), 429)
  assert.equal(await from('203.0.113.10'), 200)
})

test('limits the concurrent requests to AWS for each network, for each identity and in total', async () => {
  const held = Promise.withResolvers<void>()
  let posts = 0
  const outgoing: Pick<Outgoing, 'post'> = {
    async post() {
      posts++
      await held.promise
      throw new OutgoingError('timeout')
    },
  }
  const callers = createAwsCallers(outgoing, 'https://sts.example.com')
  const request = { target: '/', headers: {}, body: '' }
  const waiting: Promise<unknown>[] = []
  const fill = (identity: string, networks: readonly number[]) => {
    for (const network of networks.flatMap((one) => Array<number>(maxAsking.network).fill(one))) {
      waiting.push(callers.identify(request, { network: `${network}`, identity }))
    }
  }
  const tooMany = { code: 'RESOURCE_EXHAUSTED' }
  const networks = Array.from({ length: maxAsking.identity / maxAsking.network }, (_, i) => i)
  fill('one', [0])
  await assert.rejects(callers.identify(request, { network: '0', identity: 'one' }), tooMany)
  fill('one', networks.slice(1))
  await assert.rejects(callers.identify(request, { network: 'more', identity: 'one' }), tooMany)
  for (let i = 1; i < maxAsking.all / maxAsking.identity; i++) fill(`other-${i}`, networks)
  await assert.rejects(callers.identify(request, { network: 'more', identity: 'last' }), tooMany)
  assert.equal(posts, maxAsking.all)
  held.resolve()
  const unavailable = {
    code: 'UNAVAILABLE',
    message: 'the signed request cannot be verified, because AWS does not respond',
  }
  for (const answer of waiting) await assert.rejects(answer, unavailable)
  for (const identity of ['one', 'last']) {
    await assert.rejects(callers.identify(request, { network: '0', identity }), unavailable)
  }
})

test('returns UNAVAILABLE if AWS STS fails, and the reason instead of an identity if AWS STS refuses the request', async () => {
  const answering = (status: number) =>
    createAwsCallers({ post: async () => ({ status, headers: {}, body: '' }) } as never, 'https://sts.example.com')
  const [request, from] = [
    { target: '/', headers: {}, body: '' },
    { network: '0', identity: 'one' },
  ]
  await assert.rejects(answering(503).identify(request, from), {
    code: 'UNAVAILABLE',
    message: 'AWS responded with HTTP 503',
  })
  assert.deepEqual(await answering(403).identify(request, from), { refused: 'AWS responded with HTTP 403' })
})
