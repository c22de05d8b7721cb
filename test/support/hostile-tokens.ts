// Tables of tokens that must be refused. Each token differs in one point from a valid token of a job.
import {
  createHmac,
  createPublicKey,
  generateKeyPairSync,
  type JsonWebKey,
  type KeyLike,
  type SignKeyObjectInput,
  sign,
} from 'node:crypto'
import type { FakeIssuer } from './fake-issuer.ts'
import type { Json } from './pinfold.ts'

/** `code` is UNAUTHENTICATED. It is PERMISSION_DENIED if the token is valid for another identity. */
export type Hostile = { name: string; token: string; code: 16 | 7; identity: 'rsa' | 'ec' }

export type Scene = {
  rsa: FakeIssuer
  ec: FakeIssuer
  /** Audience of the valid token. */
  audience: string
  subject: string
  /** Tokens that our own server has issued, by name. */
  own: Record<string, string>
  /** Time of the server that checks the tokens, in seconds since 1970. */
  now: number
}

const text = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value))
const encode = (value: unknown): string => Buffer.from(text(value)).toString('base64url')
const hash: Record<string, string> = { '256': 'sha256', '384': 'sha384', '512': 'sha512' }

export function hostileTokens({ rsa, ec, audience, subject, own, now }: Scene): Hostile[] {
  const all: Hostile[] = []
  const add = (name: string, token: string, code: 16 | 7 = 16, identity: 'rsa' | 'ec' = 'rsa') =>
    void all.push({ name, token, code, identity })

  const header = (over: Json = {}): Json => ({ alg: 'RS256', kid: 'key-1', typ: 'JWT', ...over })
  const claims = (over: Json = {}): Json => ({
    iss: rsa.url,
    sub: subject,
    aud: audience,
    iat: now,
    exp: now + 300,
    ...over,
  })
  const signed = (over: Json, inHeader: Json = {}) => rsa.signRaw(text(header(inHeader)), text(claims(over)))
  const ecHeader = { alg: 'ES256', kid: 'key-1', typ: 'JWT' }
  const ecSigned = (over: Json = {}, inHeader: Json = {}) =>
    ec.signRaw(text({ ...ecHeader, ...inHeader }), text(claims({ iss: ec.url, ...over })))
  const unsigned = (inHeader: Json, over: Json = {}) => `${encode(header(inHeader))}.${encode(claims(over))}`
  /** JSON text of the valid token, with the value of one claim or header written by hand. */
  const rawClaims = (json: string) => rsa.signRaw(text(header()), json)
  const rawHeader = (json: string | Buffer) => rsa.signRaw(json, text(claims()))
  const pieceOf = (value: Json) => text(value).slice(1, -1)
  const good = signed({})
  const [goodHeader, goodClaims, goodSignature] = good.split('.') as [string, string, string]
  const goodBytes = Buffer.from(goodSignature, 'base64url')
  const attacker = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const by = (digest: string, input: string, key: KeyLike | SignKeyObjectInput) =>
    `${input}.${sign(digest, Buffer.from(input), key as KeyLike).toString('base64url')}`
  const byAttacker = (inHeader: Json) => by('sha256', unsigned(inHeader), attacker.privateKey)

  // Tokens without a signature.
  for (const alg of ['none', 'None', 'NONE', 'nOnE', 'none ', ' none', 'no\u006ee\u0000', '', 'null']) {
    add(`alg ${JSON.stringify(alg)} without a signature`, `${unsigned({ alg })}.`)
    add(`alg ${JSON.stringify(alg)} with any signature`, `${unsigned({ alg })}.AAAA`)
    add(`alg ${JSON.stringify(alg)} with the good signature`, `${unsigned({ alg })}.${goodSignature}`)
  }
  for (const alg of [null, 1, true, [], ['RS256'], {}]) add(`alg ${text(alg)}`, signed({}, { alg }))
  add('no alg', rawHeader('{"kid":"key-1"}'))

  // Tokens signed with the public key as the secret of a MAC.
  const rsaJwk = rsa.jwks().keys[0]! as JsonWebKey
  const ecJwk = ec.jwks().keys[0]! as JsonWebKey
  for (const [jwk, iss, identity] of [
    [rsaJwk, rsa.url, 'rsa'],
    [ecJwk, ec.url, 'ec'],
  ] as const) {
    const key = createPublicKey({ key: jwk, format: 'jwk' })
    const pem = key.export({ type: 'spki', format: 'pem' }).toString()
    const secrets: Record<string, string | Buffer> = {
      PEM: pem,
      'PEM without its last line break': pem.trimEnd(),
      'PEM with CRLF': pem.replaceAll('\n', '\r\n'),
      DER: key.export({ type: 'spki', format: 'der' }),
      JWK: text(jwk),
      'JWK set': text({ keys: [jwk] }),
      numbers: Buffer.from(`${jwk.n ?? ''}${jwk.x ?? ''}${jwk.y ?? ''}`, 'base64url'),
      nothing: '',
    }
    for (const bits of ['256', '384', '512']) {
      for (const [name, secret] of Object.entries(secrets)) {
        const input = unsigned({ alg: `HS${bits}` }, { iss })
        const mac = createHmac(hash[bits]!, secret).update(input).digest('base64url')
        add(`HS${bits} of ${identity} by ${name}`, `${input}.${mac}`, 16, identity)
      }
    }
  }

  // Tokens with an algorithm that does not fit the key.
  for (const alg of [
    'ES256',
    'ES384',
    'ES512',
    'PS256',
    'RS384',
    'EdDSA',
    'Ed25519',
    'HS256',
    'rs256',
    'RS256 ',
    'RS1',
  ]) {
    add(`RS256 signature called ${alg}`, signed({}, { alg }))
  }
  for (const alg of [
    'ES256K',
    'RSA-OAEP',
    'dir',
    'A128KW',
    'PBES2-HS256+A128KW',
    '__proto__',
    'constructor',
    'toString',
  ]) {
    add(`alg ${alg}`, signed({}, { alg }))
  }
  for (const alg of ['RS256', 'PS256', 'ES384', 'ES512', 'EdDSA', 'ES256K']) {
    add(`ES256 signature called ${alg}`, ecSigned({}, { alg }), 16, 'ec')
  }

  // Tokens signed with a key of another issuer.
  const attackerJwk = attacker.publicKey.export({ format: 'jwk' }) as Json
  for (const kid of ['key-1', 'attacker', undefined]) add(`the attacker's key as ${kid}`, byAttacker({ kid }))
  add("another issuer's key", ec.signRaw(text({ ...ecHeader }), text(claims())))
  add("another issuer's key called RS256", ec.signRaw(text(header()), text(claims())))
  for (const kid of [
    '../../../../dev/null',
    '/dev/null',
    'file:///dev/null',
    "key-1' OR '1'='1",
    "' UNION SELECT 'key",
    'key-1\u0000',
    'key-1 ',
    ' key-1',
    'KEY-1',
    'key\u20101',
    'http://127.0.0.1/keys',
    '__proto__',
    'constructor',
    '',
    '|id',
    '$(id)',
    '0',
    'key-1\n',
    'key-1,key-2',
    'x'.repeat(512),
    'x'.repeat(513),
    1,
    null,
    true,
    [],
    ['key-1'],
    {},
  ]) {
    add(`kid ${text(kid).slice(0, 40)}`, signed({}, { kid }))
  }
  const chooses: Record<string, unknown> = {
    jku: 'https://attacker.example/keys',
    x5u: 'https://attacker.example/cert',
    jwk: { ...attackerJwk, kid: 'key-1' },
    x5c: ['MIIB'],
    crit: ['exp'],
    b64: false,
    zip: 'DEF',
    enc: 'A256GCM',
    cty: 'JWT',
  }
  for (const [name, value] of Object.entries(chooses)) {
    add(`${name} in the header`, signed({}, { [name]: value }))
    add(
      `${name} in the header, signed by the attacker`,
      byAttacker({ [name]: value, ...(name === 'jwk' && { kid: 'a' }) }),
    )
    add(`${name} null in the header`, signed({}, { [name]: null }))
  }
  add('crit without names', signed({}, { crit: [] }))
  add('b64 and crit', signed({}, { b64: false, crit: ['b64'] }))
  for (const typ of ['JWE', 'JOSE+JSON', 'dpop+jwt', 'secevent+jwt', 'logout+jwt', 'JWT ', '', 1, null, ['JWT']]) {
    add(`typ ${text(typ)}`, signed({}, { typ }))
  }

  // Tokens signed with keys that no issuer should publish.
  const weak = generateKeyPairSync('rsa', { modulusLength: 1024 })
  rsa.publish({ ...(weak.publicKey.export({ format: 'jwk' }) as Json), kid: 'weak', kty: 'RSA' })
  add('a key of 1,024 bits', by('sha256', unsigned({ kid: 'weak' }), weak.privateKey))
  rsa.publish({ kty: 'oct', kid: 'secret', k: Buffer.from('secret').toString('base64url'), alg: 'HS256' })
  const macInput = unsigned({ alg: 'HS256', kid: 'secret' })
  add('a published secret', `${macInput}.${createHmac('sha256', 'secret').update(macInput).digest('base64url')}`)
  const leaked = generateKeyPairSync('rsa', { modulusLength: 2048 })
  rsa.publish({ ...(leaked.privateKey.export({ format: 'jwk' }) as Json), kid: 'leaked', kty: 'RSA' })
  add('a published private key', by('sha256', unsigned({ kid: 'leaked' }), leaked.privateKey))
  rsa.publish({ ...attackerJwk, kid: 'for-encryption', kty: 'RSA', use: 'enc' })
  add('a key for encryption', byAttacker({ kid: 'for-encryption' }))

  // Tokens with a duplicate member.
  for (const [name, json] of Object.entries({
    alg: `{"alg":"none",${pieceOf(header())}}`,
    'alg, escaped': `{"\\u0061lg":"none",${pieceOf(header())}}`,
    kid: `{${pieceOf(header())},"kid":"key-1"}`,
    'a member that nobody reads': `{${pieceOf(header())},"x":{"y":1,"y":1}}`,
  })) {
    add(`${name} twice`, rawHeader(json))
  }
  for (const name of ['iss', 'sub', 'aud', 'exp', 'iat']) {
    const wrong = text({ [name]: name === 'exp' ? 1 : 'x' }).slice(1, -1)
    add(`${name} twice, the good one last`, rawClaims(`{${wrong},${pieceOf(claims())}}`))
    add(`${name} twice, the good one first`, rawClaims(`{${pieceOf(claims())},${wrong}}`))
  }
  add('sub twice, escaped', rawClaims(`{"s\\u0075b":"x",${pieceOf(claims())}}`))
  add('a nested member twice', rawClaims(`{${pieceOf(claims())},"a":[{"b":{"c":1,"c":2}}]}`))
  add('__proto__ twice', rawClaims(`{${pieceOf(claims())},"__proto__":1,"__proto__":2}`))

  // Tokens with claims of a wrong type, or without a claim.
  const wrongTypes: Record<string, unknown[]> = {
    iss: [1, null, true, [], {}, [rsa.url], ''],
    sub: [1, null, true, [], {}, [subject], ''],
    aud: [1, null, true, {}, [], [1], [null], [audience, 1], [[audience]], { 0: audience }],
    exp: ['text', String(now + 300), null, true, [], {}, [now + 300], ''],
    nbf: ['text', String(now), null, true, [], {}],
    iat: ['text', String(now), null, true, [], {}],
  }
  for (const [name, values] of Object.entries(wrongTypes)) {
    for (const value of values) add(`${name} ${text(value).slice(0, 40)}`, signed({ [name]: value }))
  }
  for (const name of ['iss', 'sub', 'aud', 'exp']) add(`no ${name}`, signed({ [name]: undefined }))
  add('no claims', rawClaims('{}'))
  for (const exp of ['1e400', '-1e400', 'NaN', 'Infinity', '0x7fffffff', '01']) {
    add(`exp ${exp}`, rawClaims(`{${pieceOf(claims({ exp: undefined }))},"exp":${exp}}`))
  }

  // Tokens with invalid times.
  for (const exp of [
    now - 3600,
    now - 61,
    now - 61.5,
    0,
    -1,
    0.5,
    -1e300,
    now + 367 * 86_400,
    1e300,
    9e15,
    (now + 300) * 1000,
  ]) {
    add(`exp ${exp}`, signed({ exp }))
  }
  for (const time of [now + 120, now + 1e9, 1e300, now * 1000]) {
    add(`nbf ${time}`, signed({ nbf: time }))
    add(`iat ${time}`, signed({ iat: time }))
  }

  // Tokens with names that are similar to the right ones, signed with the right key.
  const { port } = new URL(rsa.url)
  for (const iss of [
    `${rsa.url}/`,
    `${rsa.url}//`,
    rsa.url.replace('http:', 'HTTP:'),
    rsa.url.replace('http:', 'https:'),
    rsa.url.replace(`:${port}`, ''),
    rsa.url.replace(port, `0${port}`),
    rsa.url.replace('127.0.0.1', 'localhost'),
    rsa.url.replace('127.0.0.1', '127.0.0.1.'),
    rsa.url.replace('127.0.0.1', '127.1'),
    rsa.url.replace('127.0.0.1', '127%2e0.0.1'),
    rsa.url.replace('127.0.0.1', '127.0.0.１'),
    rsa.url.replace('127.0.0.1', '2130706433'),
    rsa.url.replace('//', '//user@'),
    rsa.url.replace('//', '//attacker.example#@'),
    `${rsa.url}.attacker.example`,
    `${rsa.url}@attacker.example`,
    `${rsa.url}#`,
    `${rsa.url}?`,
    `${rsa.url}/..`,
    `${rsa.url}/%2e`,
    ` ${rsa.url}`,
    `${rsa.url} `,
    `${rsa.url}\u200b`,
    `https://attacker.example/${rsa.url}`,
    'https://attacker.example',
    'accounts.google.com',
    'file:///etc/passwd',
    '.*',
    '__proto__',
    ec.url,
  ]) {
    // The server knows this last issuer, so it can tell that the issuer's key did not sign the token.
    add(`issuer ${iss}`, signed({ iss }), iss === ec.url ? 16 : 7)
  }
  for (const tail of ['\u0000', '\n', '\ud800']) {
    add(`issuer and ${JSON.stringify(tail)}`, signed({ iss: rsa.url + tail }))
    add(
      `subject and ${JSON.stringify(tail)}`,
      rawClaims(`{${pieceOf(claims({ sub: undefined }))},"sub":${JSON.stringify(subject + tail)}}`),
    )
  }
  for (const sub of [
    subject.toUpperCase(),
    `${subject} `,
    ` ${subject}`,
    `${subject}/`,
    `${subject}-2`,
    subject.slice(0, -1),
    subject.replaceAll('a', '\u0430'),
    subject.replaceAll(':', '\uff1a'),
    `${subject}\u200b`,
    encodeURIComponent(subject),
    `${subject}:pull_request`,
    '*',
    '.*',
    'admin',
    '__proto__',
    subject.repeat(20),
  ]) {
    add(`subject ${sub.slice(0, 60)}`, signed({ sub }), 7)
  }
  for (const aud of [
    'https://attacker.example',
    `${audience}/`,
    ` ${audience}`,
    `${audience} `,
    `${audience},${audience}`,
    audience.toUpperCase(),
    audience.slice(0, -1),
    `${audience}.attacker.example`,
    audience.replace('http:', 'https:'),
    ['https://attacker.example', `${audience}/`],
    '*',
    '.*',
    '',
    [''],
    rsa.url,
    'sigstore',
  ]) {
    add(`audience ${text(aud)}`, signed({ aud }))
  }

  // Valid tokens of other identities, and tokens for another entry point.
  add("another job's token", signed({ sub: 'repo:acme/other:ref:refs/heads/main' }), 7)
  add("another issuer's token", ecSigned(), 7)
  add("another issuer's token for its own identity's neighbour", good, 7, 'ec')
  for (const [name, token] of Object.entries(own)) add(name, token)

  // Texts that do not consist of three base64url parts.
  const parts = [goodHeader, goodClaims, goodSignature]
  for (const [name, token] of Object.entries({
    'one dot': '.',
    'two dots': '..',
    'three dots': '...',
    'one part': goodHeader,
    'two parts': `${goodHeader}.${goodClaims}`,
    'no header': `.${goodClaims}.${goodSignature}`,
    'no claims': `${goodHeader}..${goodSignature}`,
    'no signature': `${goodHeader}.${goodClaims}.`,
    'a dot at the end': `${good}.`,
    'a fourth part': `${good}.AAAA`,
    'a dot at the start': `.${good}`,
    twice: `${good}.${good}`,
    'a list': `${good},${good}`,
    'a space inside': parts.join('. '),
    'a line break inside': parts.join('.\n'),
    'a line break at the end': `${good}\n`,
    'a tab at the start': `\t${good}`,
    'a NUL at the end': `${good}\u0000`,
    'in quotes': `"${good}"`,
    'with its scheme': `Bearer ${good}`,
    'percent-encoded dots': parts.join('%2E'),
    'full-width dots': parts.join('\uff0e'),
    'the other base64 alphabet': `${goodHeader}.${goodClaims}.${goodBytes.toString('base64')}`,
    'JSON serialisation': text({ protected: goodHeader, payload: goodClaims, signature: goodSignature }),
    'general JSON serialisation': text({
      payload: goodClaims,
      signatures: [{ protected: goodHeader, signature: goodSignature }],
    }),
    'parts in another order': `${goodClaims}.${goodHeader}.${goodSignature}`,
    'header twice': `${goodHeader}.${goodHeader}.${goodSignature}`,
    oversized: signed({ pad: 'x'.repeat(16 * 1024) }),
    'an oversized header': signed({}, { pad: 'x'.repeat(16 * 1024) }),
    'an oversized signature': `${good}${'A'.repeat(16 * 1024)}`,
    'JWE by dir': `${encode({ alg: 'dir', enc: 'A256GCM' })}..AAAAAAAAAAAAAAAA.AAAA.AAAAAAAAAAAAAAAAAAAAAA`,
    'JWE by RSA-OAEP': `${encode({ alg: 'RSA-OAEP', enc: 'A256GCM', cty: 'JWT' })}.AAAA.AAAAAAAAAAAAAAAA.AAAA.AAAAAAAAAAAAAAAAAAAAAA`,
    'nested, with cty': rsa.signRaw(text(header({ cty: 'JWT' })), good),
    nested: rsa.signRaw(text(header()), good),
    'nested as JSON text': rsa.signRaw(text(header()), JSON.stringify(good)),
  })) {
    add(name, token)
  }
  parts.forEach((part, at) => {
    const withPart = (other: string) => parts.map((one, i) => (i === at ? other : one)).join('.')
    add(`padding in part ${at}`, withPart(`${part}=`))
    add(`two padding signs in part ${at}`, withPart(`${part}==`))
    add(`one digit more in part ${at}`, withPart(`${part}A`))
    add(`one digit less in part ${at}`, withPart(part.slice(0, -1)))
    add(`half of part ${at}`, withPart(part.slice(0, part.length / 2)))
    add(`a plus sign in part ${at}`, withPart(`${part.slice(0, -1)}+`))
    // If the last digit is not completely used, changes of its low bits do not change the bytes.
    const padded = signed({ pad: 'x'.repeat(at) }, { pad: 'x'.repeat(at) }).split('.')
    for (let fill = 0; padded[at]!.length % 4 === 0 && fill < 3; fill++) {
      padded.splice(0, 3, ...signed({ pad: 'y'.repeat(fill) }, { pad: 'z'.repeat(fill) }).split('.'))
    }
    const digits = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
    const last = digits[digits.indexOf(padded[at]!.at(-1)!) + 1]!
    padded[at] = padded[at]!.slice(0, -1) + last
    add(`another spelling of part ${at}`, padded.join('.'))
  })
  for (const length of [1, 10, 100, good.length - 100, good.length - 2])
    add(`the first ${length} characters`, good.slice(0, length))

  // Tokens with invalid signatures.
  const withSignature = (bytes: Buffer) => `${goodHeader}.${goodClaims}.${bytes.toString('base64url')}`
  for (let at = 0; at < 16; at++) {
    const flipped = Buffer.from(goodBytes)
    flipped[at * 16]! ^= 1 << (at % 8)
    add(`bit ${at} of the signature`, withSignature(flipped))
  }
  add('a signature of zeros', withSignature(Buffer.alloc(256)))
  add('a signature of one', withSignature(Buffer.concat([Buffer.alloc(255), Buffer.from([1])])))
  add('a signature of ones', withSignature(Buffer.alloc(256, 255)))
  add('a signature with a zero in front', withSignature(Buffer.concat([Buffer.alloc(1), goodBytes])))
  add("another token's signature", withSignature(Buffer.from(signed({ x: 1 }).split('.')[2]!, 'base64url')))
  const [ecHead, ecClaims, ecSignature] = ecSigned().split('.') as [string, string, string]
  const [r, s] = [
    Buffer.from(ecSignature, 'base64url').subarray(0, 32),
    Buffer.from(ecSignature, 'base64url').subarray(32),
  ]
  const zero = Buffer.alloc(32)
  const order = Buffer.from('ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551', 'hex')
  const derInteger = (bytes: Buffer) => {
    const positive = bytes[0]! > 127 ? Buffer.concat([Buffer.alloc(1), bytes]) : bytes
    return Buffer.concat([Buffer.from([2, positive.length]), positive])
  }
  const der = Buffer.concat([derInteger(r), derInteger(s)])
  for (const [name, bytes] of Object.entries({
    'in DER': Buffer.concat([Buffer.from([0x30, der.length]), der]),
    'with r zero': Buffer.concat([zero, s]),
    'with s zero': Buffer.concat([r, zero]),
    'of zeros': Buffer.alloc(64),
    'with r and s swapped': Buffer.concat([s, r]),
    'with r the order': Buffer.concat([order, s]),
    'with r and s the order': Buffer.concat([order, order]),
    'of ones': Buffer.alloc(64, 255),
    'of 63 bytes': Buffer.concat([r, s]).subarray(0, 63),
    'of 65 bytes': Buffer.concat([r, s, Buffer.alloc(1)]),
    'of r alone': r,
  })) {
    add(`an ES256 signature ${name}`, `${ecHead}.${ecClaims}.${bytes.toString('base64url')}`, 16, 'ec')
  }

  // Tokens whose header or payload is not a JSON object.
  const bom = '\ufeff'
  add('BOM before the header', rawHeader(bom + text(header())))
  add('BOM before the claims', rawClaims(bom + text(claims())))
  add('BOM after the claims', rawClaims(text(claims()) + bom))
  add('the claims in UTF-16', rsa.signRaw(text(header()), Buffer.from(text(claims()), 'utf16le')))
  for (const bytes of ['ff', 'c0af', 'eda080', 'f8888080', '80']) {
    const broken = Buffer.concat([
      Buffer.from(`{${pieceOf(claims())},"x":"`),
      Buffer.from(bytes, 'hex'),
      Buffer.from('"}'),
    ])
    add(`${bytes} in the claims`, rsa.signRaw(text(header()), broken))
    const head = Buffer.concat([
      Buffer.from(`{${pieceOf(header())},"x":"`),
      Buffer.from(bytes, 'hex'),
      Buffer.from('"}'),
    ])
    add(`${bytes} in the header`, rawHeader(head))
  }
  for (const depth of [300, 4000]) {
    add(`lists ${depth} deep`, rawClaims(`{${pieceOf(claims())},"x":${'['.repeat(depth)}${']'.repeat(depth)}}`))
    add(`a header ${depth} deep`, rawHeader(`{${pieceOf(header())},"x":${'['.repeat(depth)}${']'.repeat(depth)}}`))
  }
  add('objects 900 deep', rawClaims(`{${pieceOf(claims())},"x":${'{"x":'.repeat(900)}1${'}'.repeat(900)}}`))
  add('a header in __proto__', rawHeader(`{"__proto__":${text(header())}}`))
  add('claims in __proto__', rawClaims(`{"__proto__":${text(claims())}}`))
  add('a subject in __proto__', rawClaims(`{${pieceOf(claims({ sub: undefined }))},"__proto__":{"sub":"${subject}"}}`))
  for (const json of ['[]', 'null', 'true', '1', '""', '"x"', ' ', '{', '}', '{}{}', `[${text(claims())}]`]) {
    add(`claims ${json.slice(0, 20)}`, rawClaims(json))
  }
  for (const json of ['[]', 'null', 'true', '1', '"RS256"', ' ', '{', '{}', `[${text(header())}]`]) {
    add(`header ${json.slice(0, 20)}`, rawHeader(json))
  }
  add('a comma at the end', rawClaims(`{${pieceOf(claims())},}`))
  add('a comment', rawClaims(`{${pieceOf(claims())}/* */}`))
  add('single quotes', rawClaims(text(claims()).replaceAll('"', "'")))
  add('something after the claims', rawClaims(`${text(claims())}x`))
  add('NUL after the claims', rawClaims(`${text(claims())}\u0000`))
  return all
}
