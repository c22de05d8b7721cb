// A build platform to try keyless access with: an OpenID provider on loopback that gives its job `job-1` signed tokens.
// Not for anything else: the job is known by a password that stands below, and everything is kept in memory.
//
// `bin/pinfold-node examples/oidc-provider.ts [PORT]`; port 0 takes a free one.
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { exportJWK, generateKeyPair } from 'jose'
// @ts-expect-error The package comes without types.
import { Provider } from 'oidc-provider'

const minutes = 60
const { privateKey } = await generateKeyPair('RS256', { extractable: true })

const server = createServer()
server.listen(Number(process.argv[2] ?? 9090), '127.0.0.1')
await once(server, 'listening')
const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
const provider = new Provider(url, {
  jwks: { keys: [{ ...(await exportJWK(privateKey)), alg: 'RS256', use: 'sig', kid: 'key-1' }] },
  clients: [
    {
      client_id: 'job-1',
      client_secret: 'known-to-the-platform-only',
      grant_types: ['client_credentials'],
      redirect_uris: [],
      response_types: [],
    },
  ],
  features: {
    devInteractions: { enabled: false },
    clientCredentials: { enabled: true },
    // The job chooses the audience of its token, as on most platforms.
    resourceIndicators: {
      enabled: true,
      getResourceServerInfo: (_: unknown, audience: string) => ({
        scope: '',
        audience,
        accessTokenFormat: 'jwt',
        accessTokenTTL: 10 * minutes,
        jwt: { sign: { alg: 'RS256' } },
      }),
    },
  },
  cookies: { keys: ['no-cookies-are-set'] },
})
server.on('request', provider.callback())
process.stdout.write(`ready ${url}\n`)
