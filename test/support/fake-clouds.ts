// Fakes of AWS, Google Cloud and Azure on loopback, which exchange a token of an outside issuer for credentials. Like the real
// ones, they fetch the keys of the issuer and compare the claims with the configured account.
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createRemoteJWKSet, type JWTPayload, jwtVerify } from 'jose'
import type { Json } from './pinfold.ts'

type Answer = { status: number; body: string }
export type FakeClouds = Awaited<ReturnType<typeof startClouds>>

/** Tokens that an account accepts: their issuer, subject and audience. */
type Trust = { issuer: string; subject: string; audience: string }

export async function startClouds() {
  const trusts = new Map<string, Trust>()
  const seen: { path: string; alg: string; payload: JWTPayload }[] = []
  const state = {
    url: '',
    seen,
    /** Configures an account. `name` is a role ARN, a Google provider with its service account, or an Azure application. */
    trust: (name: string, trust: Trust) => void trusts.set(name, trust),
    /** Replaces the answer, to test invalid answers. */
    broken: undefined as Answer | undefined,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }

  /** Claims of a token if the account accepts the token. Undefined for any other token. */
  const accept = async (path: string, name: string, token: string): Promise<JWTPayload | undefined> => {
    const trust = trusts.get(name)
    if (!trust) return undefined
    const discovery = (await (await fetch(`${trust.issuer}/.well-known/openid-configuration`)).json()) as Json
    const keys = createRemoteJWKSet(new URL(discovery.jwks_uri))
    const { issuer, subject, audience } = trust
    const verified = await jwtVerify(token, keys, { issuer, subject, audience, typ: 'JWT' }).catch(() => undefined)
    if (verified) seen.push({ path, alg: verified.protectedHeader.alg, payload: verified.payload })
    return verified?.payload
  }

  const aws = async (path: string, form: URLSearchParams): Promise<Answer> => {
    const fault = (status: number, code: string, message: string) => ({
      status,
      body: `<ErrorResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/">
  <Error><Type>Sender</Type><Code>${code}</Code><Message>${message}</Message></Error>
  <RequestId>0b0cc2b4-0b5f-4f4c-8b1e-0f3d9e8c5a11</RequestId>
</ErrorResponse>`,
    })
    if (form.get('Action') !== 'AssumeRoleWithWebIdentity' || form.get('Version') !== '2011-06-15') {
      return fault(400, 'InvalidAction', 'Could not find operation')
    }
    const [role, session] = [form.get('RoleArn') ?? '', form.get('RoleSessionName') ?? '']
    const seconds = Number(form.get('DurationSeconds'))
    if (!/^[\w+=,.@-]{2,64}$/.test(session) || !(seconds >= 900 && seconds <= 43_200)) {
      return fault(400, 'ValidationError', 'a parameter is out of its bounds')
    }
    const payload = await accept(path, role, form.get('WebIdentityToken') ?? '')
    if (!payload) return fault(403, 'AccessDenied', 'Not authorized to perform sts:AssumeRoleWithWebIdentity')
    return {
      status: 200,
      body: `<AssumeRoleWithWebIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/">
  <AssumeRoleWithWebIdentityResult>
    <SubjectFromWebIdentityToken>${payload.sub}</SubjectFromWebIdentityToken>
    <Credentials>
      <SessionToken>session</SessionToken><SecretAccessKey>secret</SecretAccessKey>
      <Expiration>2026-01-01T00:15:00Z</Expiration><AccessKeyId>ASIAEXAMPLE</AccessKeyId>
    </Credentials>
  </AssumeRoleWithWebIdentityResult>
</AssumeRoleWithWebIdentityResponse>`,
    }
  }

  const googleSts = async (path: string, request: Json): Promise<Answer> => {
    const fault = (error: string, description: string) => json(400, { error, error_description: description })
    if (request.grantType !== 'urn:ietf:params:oauth:grant-type:token-exchange')
      return fault('invalid_grant', 'grantType')
    if (request.subjectTokenType !== 'urn:ietf:params:oauth:token-type:jwt') return fault('invalid_request', 'type')
    const payload = await accept(path, request.audience, request.subjectToken)
    if (!payload) return fault('invalid_grant', 'The attribute condition rejected the credential')
    const token = { access_token: `federated ${payload.sub}`.replace(' ', '.'), token_type: 'Bearer', expires_in: 3599 }
    return json(200, { ...token, issued_token_type: 'urn:ietf:params:oauth:token-type:access_token' })
  }

  const googleIam = (path: string, bearer: string | undefined): Answer => {
    const account = /serviceAccounts\/(.+):generateAccessToken$/.exec(decodeURIComponent(path))?.[1] ?? ''
    const trust = trusts.get(account)
    if (!trust || bearer !== `Bearer federated.${trust.subject}`) {
      const message = "Permission 'iam.serviceAccounts.getAccessToken' denied on resource"
      return json(403, { error: { code: 403, message, status: 'PERMISSION_DENIED' } })
    }
    return json(200, { accessToken: 'ya29.example', expireTime: '2026-01-01T00:05:00Z' })
  }

  const azure = async (path: string, form: URLSearchParams): Promise<Answer> => {
    const fault = (error: string, description: string) => json(401, { error, error_description: description })
    if (form.get('grant_type') !== 'client_credentials') return fault('unsupported_grant_type', 'AADSTS70003')
    const type = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer'
    if (form.get('client_assertion_type') !== type) return fault('invalid_client', 'AADSTS900144')
    if (!form.get('scope')?.endsWith('/.default')) return fault('invalid_scope', 'AADSTS1002012')
    const name = `${path.split('/')[1]} ${form.get('client_id')}`
    const payload = await accept(path, name, form.get('client_assertion') ?? '')
    if (!payload) {
      return fault('invalid_client', 'AADSTS700213: No matching federated identity record found.\r\nTrace ID: 0')
    }
    return json(200, { token_type: 'Bearer', expires_in: 3599, access_token: 'eyJ.example' })
  }

  const answer = async (req: IncomingMessage): Promise<Answer> => {
    const chunks: Buffer[] = []
    for await (const chunk of req) chunks.push(chunk as Buffer)
    const text = Buffer.concat(chunks).toString()
    const path = req.url!
    if (state.broken) return state.broken
    if (req.method !== 'POST') return json(405, {})
    if (path === '/') return aws(path, new URLSearchParams(text))
    if (path === '/v1/token') return googleSts(path, JSON.parse(text) as Json)
    if (path.startsWith('/v1/projects/-/serviceAccounts/')) return googleIam(path, req.headers.authorization)
    if (path.endsWith('/oauth2/v2.0/token')) return azure(path, new URLSearchParams(text))
    return json(404, {})
  }

  const server = createServer((req, res) => {
    void answer(req).then(({ status, body }) => res.writeHead(status).end(body))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  state.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return state
}

function json(status: number, body: object): Answer {
  return { status, body: JSON.stringify(body) }
}
