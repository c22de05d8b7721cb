// Form of an identity provider.
import type { Provider, Role } from '../../data/types.ts'
import type { Field } from '../../ui/form.tsx'
import { words } from '../../words.ts'
import { roleOptions } from './roles.ts'

/** Fields of the form, for a new or an existing provider. */
export function providerFields(roles: readonly Role[], one?: Provider): Field[] {
  const oidc = one?.oidc
  const viewer = roles.find(({ name }) => name === 'viewer')?.uid ?? ''
  return [
    { name: 'name', label: words.name, value: one?.name ?? '' },
    { name: 'issuer', label: words.issuer, type: 'url', value: oidc?.issuer ?? '' },
    { name: 'clientId', label: words.clientId, value: oidc?.clientId ?? '' },
    {
      ...{ name: 'clientSecret', label: words.clientSecret, type: 'password', isOptional: true },
      hint: one ? words.secretStays : words.neverShown,
    },
    { name: 'pkceEnabled', label: words.pkce, type: 'check', value: oidc && !oidc.pkceEnabled ? '' : 'yes' },
    {
      ...{ name: 'additionalScopes', label: words.scopes, hint: words.scopesHint, isOptional: true },
      value: oidc ? oidc.additionalScopes.join(' ') : 'email profile',
    },
    {
      ...{ name: 'groupsClaim', label: words.groupsClaim, hint: words.groupsClaimHint, isOptional: true },
      value: oidc?.groupsClaim ?? '',
    },
    {
      ...{ name: 'defaultRole', label: words.defaultRole, type: 'select', options: roleOptions(roles) },
      value: one?.defaultRole ?? viewer,
    },
  ]
}

const paths = ['name', 'default_role', 'oidc.issuer', 'oidc.client_id', 'oidc.pkce_enabled', 'oidc.groups_claim']

/**
 * Body for the API. `mask` lists the fields of an update. An empty secret is omitted, so that the server keeps the stored one.
 */
export function providerOf(values: Record<string, string>): { body: object; mask: string } {
  const { name, defaultRole, issuer, clientId, clientSecret, groupsClaim } = values
  const additionalScopes = (values.additionalScopes ?? '').split(/[\s,]+/).filter((one) => one !== '')
  const oidc = { issuer, clientId, groupsClaim, additionalScopes, pkceEnabled: values.pkceEnabled === 'yes' }
  return {
    body: { name, defaultRole, oidc: { ...oidc, ...(clientSecret && { clientSecret }) } },
    mask: [...paths, 'oidc.additional_scopes', ...(clientSecret ? ['oidc.client_secret'] : [])].join(),
  }
}
