// OpenID provider on loopback, like that of a CI platform. It signs any token for a test.
import { KeyObject, sign } from 'node:crypto'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type CryptoKey, exportJWK, generateKeyPair, type JWK, SignJWT } from 'jose'

export type FakeIssuer = Awaited<ReturnType<typeof startIssuer>>
type Key = { kid: string; privateKey: CryptoKey; jwk: JWK }

/**
 * Starts an issuer. `alg` is its signing algorithm. `path` is the path of its URL, for platforms with many issuers on one host.
 * Listens on a free port, or on the port of a given URL.
 */
export async function startIssuer(alg = 'RS256', path = '', port = 0) {
  const requests: string[] = []
  const metadata: Record<string, unknown> = {}
  let keys: Key[] = [await newKey(alg, 'key-1')]
  const published: JWK[] = []
  let url = ''
  let userInfo: object | undefined
  let tokenAnswer: () => Promise<object> = async () => ({ error: 'invalid_grant' })
  const server: Server = createServer((req, res) => {
    requests.push(req.url!)
    if (req.url === '/token') {
      void tokenAnswer().then((answer) => {
        res.writeHead('error' in answer ? 400 : 200, { 'content-type': 'application/json' }).end(JSON.stringify(answer))
      })
      return
    }
    const base = path.replace(/\/$/, '')
    const documents: Record<string, object> = {
      [`${base}/.well-known/openid-configuration`]: {
        issuer: url,
        jwks_uri: new URL('/keys', url).href,
        authorization_endpoint: new URL('/authorize', url).href,
        token_endpoint: new URL('/token', url).href,
        ...(userInfo && { userinfo_endpoint: new URL('/userinfo', url).href }),
        ...metadata,
      },
      ...(userInfo && { '/userinfo': userInfo }),
      '/keys': { keys: [...published, ...keys.map(({ jwk }) => jwk)] },
    }
    const found = documents[req.url!]
    res.writeHead(found ? 200 : 404, { 'content-type': 'application/json' })
    res.end(JSON.stringify(found ?? {}))
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject).listen(port, '127.0.0.1', resolve)
  })
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}${path}`

  return {
    url,
    /** Paths of the received requests. */
    requests,
    /** Replaces members of the discovery document. */
    metadata,
    /** Sets the answer of the token endpoint. */
    answer(tokens: () => Promise<object>): void {
      tokenAnswer = tokens
    },
    /** Sets the answer of the userinfo endpoint. The issuer has this endpoint only after the first call. */
    answerUserInfo(answer: object): void {
      userInfo = answer
    },
    jwks: () => ({ keys: keys.map(({ jwk }) => jwk) }),
    /** Signs a token with valid times. `claims` and `header` replace the defaults. */
    async token(claims: Record<string, unknown>, header: Record<string, unknown> = {}): Promise<string> {
      const now = Math.floor(Date.now() / 1000)
      const { kid, privateKey } = keys.at(-1)!
      return new SignJWT({ iss: url, iat: now, exp: now + 300, ...claims })
        .setProtectedHeader({ alg, kid, typ: 'JWT', ...header })
        .sign(privateKey)
    },
    /** Signs any bytes as header and payload of a token. They need not be JSON. */
    signRaw(header: string | Buffer, payload: string | Buffer): string {
      const text = `${Buffer.from(header).toString('base64url')}.${Buffer.from(payload).toString('base64url')}`
      const key = KeyObject.from(keys.at(-1)!.privateKey)
      return `${text}.${sign('sha256', Buffer.from(text), { key, dsaEncoding: 'ieee-p1363' }).toString('base64url')}`
    },
    /** Adds a key to the published set. The key may be one that no issuer should publish. */
    publish: (jwk: JWK) => void published.push(jwk),
    /** Replaces the signing key and the published key by a new one. */
    async rotate(): Promise<void> {
      keys = [await newKey(alg, `key-${Math.random()}`)]
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

async function newKey(alg: string, kid: string): Promise<Key> {
  const { publicKey, privateKey } = await generateKeyPair(alg, { extractable: true })
  return { kid, privateKey, jwk: { ...(await exportJWK(publicKey)), kid, alg, use: 'sig' } }
}
