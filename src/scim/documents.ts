// Documents that describe the SCIM endpoint: configuration, resource types and schemas (RFC 7644, 4; RFC 7643, 5 to 7).
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
        description: 'The SCIM token of the identity provider, sent as a bearer token',
        primary: true,
      },
    ],
    meta: { resourceType: 'ServiceProviderConfig', location: `${base}/ServiceProviderConfig` },
  }
}

export function resourceTypes(base: string): object[] {
  return [
    resourceType(base, 'User', userSchema, 'A user who signs in through the identity provider'),
    resourceType(base, 'Group', groupSchema, 'A group of users; its role mappings grant roles to its members'),
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
      attribute('type', 'string', 'Type of the value, such as work'),
      attribute('primary', 'boolean', 'True for the preferred value'),
    ],
  })

/** Schemas of users and groups. They list the attributes that providers send by default. Other attributes are stored too. */
export function schemas(base: string): object[] {
  return [
    {
      schemas: schemasOf('Schema'),
      id: userSchema,
      name: 'User',
      description:
        'A user. The server uses userName, externalId and active; all other attributes are only stored and returned.',
      attributes: [
        attribute('userName', 'string', 'Sign-in name of the user at the provider', {
          required: true,
          uniqueness: 'server',
        }),
        attribute('externalId', 'string', 'ID of the user at the provider; compared with a claim of the sign-in', {
          caseExact: true,
        }),
        attribute('active', 'boolean', 'True if the user is allowed to sign in'),
        attribute('displayName', 'string', 'Display name'),
        attribute('title', 'string', 'Job title of the user'),
        attribute('name', 'complex', 'Components of the name', {
          subAttributes: ['formatted', 'familyName', 'givenName'].map((part) =>
            attribute(part, 'string', 'One component of the name'),
          ),
        }),
        { ...values('Email addresses'), name: 'emails' },
        { ...values('Phone numbers'), name: 'phoneNumbers' },
        references('groups', 'Groups of the user', 'readOnly'),
      ],
      meta: { resourceType: 'Schema', location: `${base}/Schemas/${userSchema}` },
    },
    {
      schemas: schemasOf('Schema'),
      id: groupSchema,
      name: 'Group',
      description:
        'A group of users. Role mappings refer to its externalId, or to its displayName if it has no externalId.',
      attributes: [
        attribute('displayName', 'string', 'Display name', { required: true, uniqueness: 'server' }),
        attribute('externalId', 'string', 'ID of the group at the provider', {
          caseExact: true,
          uniqueness: 'server',
        }),
        references('members', 'Users in the group', 'readWrite'),
      ],
      meta: { resourceType: 'Schema', location: `${base}/Schemas/${groupSchema}` },
    },
  ]
}

/** Attribute that lists IDs of other resources. An entry of the list can be added and removed, but not changed. */
function references(name: string, description: string, mutability: string): object {
  const part = mutability === 'readOnly' ? 'readOnly' : 'immutable'
  return attribute(name, 'complex', description, {
    multiValued: true,
    mutability,
    subAttributes: [
      attribute('value', 'string', 'ID of the resource', { caseExact: true, mutability: part }),
      attribute('display', 'string', 'Display name of the resource', { mutability: 'readOnly' }),
      attribute('type', 'string', 'Type of the resource, or of the membership', { mutability: part }),
    ],
  })
}
