// Documents about the SCIM endpoint itself (RFC 7644, 4; RFC 7643, 5 to 7).
import { groupSchema, userSchema } from './names.ts'

export const maxResults = 200
export const maxBodyBytes = 256 * 1024

const schemasOf = (kind: string) => [`urn:ietf:params:scim:schemas:core:2.0:${kind}`]

export function serviceProviderConfig(base: string): object {
  return {
    schemas: schemasOf('ServiceProviderConfig'),
    patch: { supported: true },
    bulk: { supported: false, maxOperations: 0, maxPayloadSize: maxBodyBytes },
    filter: { supported: true, maxResults },
    changePassword: { supported: false },
    sort: { supported: false },
    etag: { supported: true },
    authenticationSchemes: [
      {
        type: 'oauthbearertoken',
        name: 'SCIM token',
        description: 'The token that was generated for the identity provider, as a bearer token',
        primary: true,
      },
    ],
    meta: { resourceType: 'ServiceProviderConfig', location: `${base}/ServiceProviderConfig` },
  }
}

export function resourceTypes(base: string): object[] {
  return [
    resourceType(base, 'User', userSchema, 'A person who signs in through the identity provider'),
    resourceType(base, 'Group', groupSchema, 'A group of people, whose role mappings hold for its members'),
  ]
}

function resourceType(base: string, id: string, schema: string, description: string): object {
  return {
    schemas: schemasOf('ResourceType'),
    id,
    name: id,
    endpoint: `/${id}s`,
    description,
    schema,
    meta: { resourceType: 'ResourceType', location: `${base}/ResourceTypes/${id}` },
  }
}

const attribute = (name: string, type: string, description: string, more: object = {}) => ({
  name,
  type,
  multiValued: false,
  description,
  required: false,
  ...(type === 'string' ? { caseExact: false } : {}),
  mutability: 'readWrite',
  returned: 'default',
  uniqueness: 'none',
  ...more,
})

const values = (description: string) =>
  attribute('', 'complex', description, {
    multiValued: true,
    subAttributes: [
      attribute('value', 'string', 'The value'),
      attribute('type', 'string', 'What it is for, such as work'),
      attribute('primary', 'boolean', 'Whether it is the first choice'),
    ],
  })

/** Schemas of people and groups, with the attributes that providers send by default. Other attributes are stored as well. */
export function schemas(base: string): object[] {
  return [
    {
      schemas: schemasOf('Schema'),
      id: userSchema,
      name: 'User',
      description: 'A person; userName, externalId and active mean something here, the rest is kept and said again',
      attributes: [
        attribute('userName', 'string', 'The name by which the provider signs the person in', {
          required: true,
          uniqueness: 'server',
        }),
        attribute('externalId', 'string', 'What the claim of a sign-in is compared with', { caseExact: true }),
        attribute('active', 'boolean', 'Whether the person may sign in'),
        attribute('displayName', 'string', 'The name to show'),
        attribute('title', 'string', 'The title of the person'),
        attribute('name', 'complex', 'The parts of the name', {
          subAttributes: ['formatted', 'familyName', 'givenName'].map((part) =>
            attribute(part, 'string', 'A part of the name'),
          ),
        }),
        { ...values('E-mail addresses'), name: 'emails' },
        { ...values('Telephone numbers'), name: 'phoneNumbers' },
        references('groups', 'Groups that the person is in', 'readOnly'),
      ],
      meta: { resourceType: 'Schema', location: `${base}/Schemas/${userSchema}` },
    },
    {
      schemas: schemasOf('Schema'),
      id: groupSchema,
      name: 'Group',
      description: 'A group of people; role mappings name it by its externalId, or by its displayName if it has none',
      attributes: [
        attribute('displayName', 'string', 'The name to show', { required: true, uniqueness: 'server' }),
        attribute('externalId', 'string', 'The id of the group at the provider', {
          caseExact: true,
          uniqueness: 'server',
        }),
        references('members', 'People in the group', 'readWrite'),
      ],
      meta: { resourceType: 'Schema', location: `${base}/Schemas/${groupSchema}` },
    },
  ]
}

/** List of IDs of other resources. Each is added and removed as a whole. */
function references(name: string, description: string, mutability: string): object {
  const part = mutability === 'readOnly' ? 'readOnly' : 'immutable'
  return attribute(name, 'complex', description, {
    multiValued: true,
    mutability,
    subAttributes: [
      attribute('value', 'string', 'The id of the resource', { caseExact: true, mutability: part }),
      attribute('display', 'string', 'The name of the resource', { mutability: 'readOnly' }),
      attribute('type', 'string', 'The kind of the resource, or of the membership', { mutability: part }),
    ],
  })
}
