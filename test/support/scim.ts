// SCIM client of an identity provider, with its token and complete answers.
import assert from 'node:assert/strict'
import { type Client, type Json, type Pinfold, roleUids } from './pinfold.ts'

export const userSchema = 'urn:ietf:params:scim:schemas:core:2.0:User'
export const groupSchema = 'urn:ietf:params:scim:schemas:core:2.0:Group'
export const patchSchema = 'urn:ietf:params:scim:api:messages:2.0:PatchOp'

export type ScimAnswer = { status: number; headers: Headers; text: string; body: Json }

/** Calls a path of the SCIM endpoint with the token, such as `/Users`. */
export function scimClient(endpoint: string, token: string | undefined) {
  const call = async (
    method: string,
    path: string,
    body?: unknown,
    more: Record<string, string> = {},
  ): Promise<ScimAnswer> => {
    const response = await fetch(`${endpoint}${path}`, {
      method,
      headers: {
        ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
        ...(body === undefined ? {} : { 'content-type': 'application/scim+json' }),
        ...more,
      },
      ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    })
    const text = await response.text()
    return {
      status: response.status,
      headers: response.headers,
      text,
      body: text === '' ? {} : (JSON.parse(text) as Json),
    }
  }
  return {
    call,
    get: (path: string) => call('GET', path),
    post: (path: string, body: unknown) => call('POST', path, body),
    put: (path: string, body: unknown) => call('PUT', path, body),
    /** A PatchOp request with these operations. */
    patch: (path: string, ...operations: Json[]) =>
      call('PATCH', path, { schemas: [patchSchema], Operations: operations }),
    delete: (path: string) => call('DELETE', path),
  }
}

/** Identity provider with an enabled SCIM endpoint, and a client with the endpoint's token. */
export async function openEndpoint(pinfold: Pinfold, owner: Client, org: string, issuer: string, name = 'scim') {
  // The endpoint can be enabled only if the organization has a second owner.
  await pinfold.seed.member(org, roleUids.owner)
  const made = await owner.post(`/iam/v2/identityProviders/${org}`, {
    name,
    defaultRole: roleUids.viewer,
    oidc: { issuer, clientId: 'c', clientSecret: 's' },
  })
  const provider = made.body.uid as string
  const path = `/iam/v2/identityProviders/${provider}`
  const { body: issued } = await owner.post(`${path}:generateScimToken`, {})
  const { body: switched } = await owner.post(`${path}:setScimEnabled`, { enabled: true, etag: issued.etag })
  const endpoint = issued.endpointUrl as string
  return {
    provider,
    path,
    endpoint,
    token: issued.token as string,
    etag: switched.etag as string,
    scim: scimClient(endpoint, issued.token),
  }
}

export function created(answer: ScimAnswer): Json {
  assert.equal(answer.status, 201, answer.text)
  return answer.body
}

export function changed(answer: ScimAnswer): Json {
  assert.equal(answer.status, 200, answer.text)
  return answer.body
}

export function assertScimError(answer: ScimAnswer, status: number, scimType?: string): void {
  assert.equal(answer.status, status, answer.text)
  assert.match(answer.headers.get('content-type')!, /^application\/scim\+json/)
  const { detail, ...rest } = answer.body
  assert.ok(detail.length > 0)
  assert.deepEqual(rest, {
    schemas: ['urn:ietf:params:scim:api:messages:2.0:Error'],
    status: String(status),
    ...(scimType ? { scimType } : {}),
  })
}
