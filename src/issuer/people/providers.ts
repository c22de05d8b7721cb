// Whom people can sign in with: the providers of the settings, and those of organisations.
import { readFile } from 'node:fs/promises'
import type { App } from '#app.ts'
import { findForSignIn, findProviderOfVerified } from '#domains/iam/identity-providers/identity-providers.service.ts'
import { AppError } from '#lib/errors.ts'
import { isUid, parentOf, rootOf } from '#lib/uid.ts'

export type SignInProvider = {
  /** The uid of an organisation's provider, or the name of one of the settings. */
  id: string
  label: string
  issuer: string
  clientId: string
  secret: string
  scopes: readonly string[]
  /** Beyond which its word counts for nothing; empty for the providers of the settings. */
  organization: string
  defaultRole: string
  groupsClaim: string
  /** The claim that says what the provider calls the person over SCIM. */
  externalIdClaim: 'sub' | 'oid'
}

/** The providers of the settings that people can choose, by name and label. */
export function offered({ config }: Pick<App, 'config'>): { id: string; label: string }[] {
  return config.peopleIssuers.flatMap(({ name, label }) => (name && label ? [{ id: name, label }] : []))
}

/** The provider of this uid or name; nothing when there is none. */
export async function findSignInProvider(app: App, id: string): Promise<SignInProvider | undefined> {
  return isUid(id) ? ofOrganization(app, id) : ofSettings(app, id)
}

/** What `idp_id` names: a provider by its uid, or the provider of a verified organisation by the organisation's name. */
export async function findByIdpId(app: App, idpId: string): Promise<SignInProvider | undefined> {
  if (isUid(idpId)) return ofOrganization(app, idpId)
  const uid = await findProviderOfVerified(app.db, idpId)
  return uid === undefined ? undefined : ofOrganization(app, uid)
}

/** Whether a verified organisation of this name signs its people in by itself. */
export async function isSignInOrganization(app: App, name: string): Promise<boolean> {
  return (await findProviderOfVerified(app.db, name)) !== undefined
}

async function ofOrganization(app: App, uid: string): Promise<SignInProvider | undefined> {
  const found = await findForSignIn(app, uid)
  if (!found) return undefined
  const { provider, secret, externalIdClaim } = found
  const { issuer, clientId, additionalScopes, groupsClaim } = provider.oidc
  return {
    id: uid,
    label: provider.name,
    issuer,
    clientId,
    secret,
    scopes: ['openid', ...additionalScopes],
    organization: rootOf(parentOf(uid)),
    defaultRole: provider.defaultRole,
    groupsClaim,
    externalIdClaim,
  }
}

async function ofSettings({ config }: App, name: string): Promise<SignInProvider | undefined> {
  const found = config.peopleIssuers.find((one) => one.label !== undefined && one.name === name)
  if (!found) return undefined
  const { issuer, audience, label, secretFile, scopes = 'email profile' } = found
  return {
    id: name,
    label: label!,
    issuer,
    clientId: audience,
    secret: secretFile === undefined ? '' : await readSecret(secretFile),
    scopes: ['openid', ...scopes.split(' ').filter((one) => one !== '' && one !== 'openid')],
    organization: '',
    defaultRole: '',
    groupsClaim: '',
    externalIdClaim: 'sub',
  }
}

/** Read each time, so that the secret can be changed while the server runs. */
async function readSecret(file: string): Promise<string> {
  try {
    const secret = (await readFile(file, 'utf8')).trim()
    if (secret === '' || secret.length > 4096) throw new Error('the file is empty or too large')
    return secret
  } catch (cause) {
    throw new AppError('UNAVAILABLE', 'the secret of the sign-in provider cannot be read now', { cause })
  }
}
