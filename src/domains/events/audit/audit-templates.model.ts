// Sentences of the audit log: one template for each type of entry.
export type AuditArea = 'Access' | 'People' | 'Policies' | 'Integrations' | 'Settings'

/** Body of an entry. A deleted resource has the members that it had before. */
export type EntryBody = Readonly<Record<string, unknown>>

/**
 * Predicate of a sentence, whose subject is the actor. `{member}` is a value of the body, and a dot separates nested members.
 * `{group}` is the scope, and `{resource}` the resource of the entry. `{member|text}` has a text for a missing value. Text in
 * brackets is left out if one of its values is missing.
 */
export type Predicate = string | ((body: EntryBody) => string)

export type Template = { area: AuditArea; title: string; predicate: Predicate }

const of = (area: AuditArea) => (title: string, predicate: Predicate) => ({ area, title, predicate })
const access = of('Access')
const people = of('People')
const policies = of('Policies')
const integrations = of('Integrations')
const settings = of('Settings')

const person = '{identity_uid|a person}'
const role = '{role_uid|a role}'
const reason = '[: “{reason}”]'
const image = '{digest|an image} in {group}'
const until = '[ until {expire_time}]'
const tags = '[ for tags {tags}]'

/** Repeats the predicate for a policy with its mode. */
const modes: Readonly<Record<string, string>> = {
  OFF: ', switched off',
  DRY_RUN: ', as dry run',
  OBSERVE: ', as dry run',
  ENFORCE: ', enforced',
  DENY: ', enforced',
  SERVE_OLDER: ', enforced',
}
const withMode = (text: string) => (body: EntryBody) => `${text}${modes[String(body.mode)] ?? ''}`

const endings: Readonly<Record<string, string>> = {
  'signed-out': 'signed out',
  ended: 'ended a session',
  provider: 'ended a session at the request of the identity provider',
  reused: 'ended a session in which an old token was used again',
  'too-many': 'ended an old session because of too many newer ones',
  deactivated: 'ended a session of a deactivated person',
  deleted: 'ended a session of a deleted person',
  'provider-removed': 'ended a session of an identity provider that is not trusted any more',
}

/** Templates by the short names of audited events. A restored backup has an entry, but no event. */
export const templates: Readonly<Record<string, Template>> = {
  restored: settings('Backup restored', 'restored the database from a backup'),
  'auth.registered': people('Person registered', 'signed in for the first time'),
  'control.iam.session.started': people('Session started', 'signed in'),
  'control.iam.session.ended': people(
    'Session ended',
    ({ reason: ending }) => endings[String(ending)] ?? 'ended a session',
  ),

  'iam.group.created': settings('Organization or folder created', 'created {resource|a folder}'),
  'iam.group.updated': settings('Organization or folder changed', 'changed {resource|a folder}'),
  'iam.group.deleted': settings('Organization or folder deleted', 'deleted {resource|a folder}[ in {group}]'),
  'control.quotas.set': settings('Quotas changed', 'changed the quotas of {organization|an organization}'),
  'iam.terms.accepted': settings('Terms accepted', 'accepted the terms for {group}'),
  'iam.account_associations.created': settings('Cloud accounts linked', 'linked cloud accounts to {group}'),
  'iam.account_associations.updated': settings('Cloud accounts changed', 'changed the cloud accounts of {group}'),
  'iam.account_associations.deleted': settings('Cloud accounts removed', 'removed the cloud accounts of {group}'),

  'iam.identity.created': people('Identity created', 'created the identity {resource|of a person} in {group}'),
  'iam.identity.updated': people('Identity changed', 'changed the identity {resource|of a person}'),
  'iam.identity.metadata.updated': people('Profile changed', 'changed the profile of {resource|a person}'),
  'iam.identity.deleted': people('Identity deleted', 'deleted the identity {resource|of a person}'),
  'iam.group_invite.created': people(
    'Invitation created',
    `invited {email|a person with a link}[ with the role {role_uid}] in {group}[, until {expiration_time}]`,
  ),
  'iam.group_invite.deleted': people('Invitation deleted', 'deleted the invitation[ of {email}] in {group}'),
  'control.iam.scim_user.created': people('User provisioned', 'provisioned the user {user.user_name} by SCIM'),
  'control.iam.scim_user.updated': people('Provisioned user changed', ({ user }) =>
    (user as { active?: boolean } | undefined)?.active === false
      ? 'deactivated the provisioned user {user.user_name}'
      : 'changed the provisioned user {user.user_name}',
  ),
  'control.iam.scim_user.deleted': people('Provisioned user deleted', 'deleted the provisioned user {user.user_name}'),
  'control.iam.scim_group.created': people(
    'Group provisioned',
    'provisioned the group {group.display_name|of a provider} by SCIM',
  ),
  'control.iam.scim_group.updated': people(
    'Provisioned group changed',
    'changed the members of the provisioned group {group.display_name|of a provider}',
  ),
  'control.iam.scim_group.deleted': people(
    'Provisioned group deleted',
    'deleted the provisioned group {group.display_name|of a provider}',
  ),

  'iam.rolebindings.created': access('Role granted', `granted ${person} the role ${role} in {group}`),
  'iam.rolebindings.created.batch': access(
    'Roles granted',
    `granted {role_bindings.identity_uid|people} the role {role_bindings.role_uid|of a member} in {group}`,
  ),
  'iam.rolebindings.updated': access('Role changed', `changed the role of ${person} to ${role} in {group}`),
  'iam.rolebindings.deleted': access('Role removed', `removed the role ${role} of ${person} in {group}`),
  'iam.roles.created': access('Role created', 'created the role {resource|of a member} in {group}'),
  'iam.roles.updated': access('Role definition changed', 'changed the role {resource|of a member}'),
  'iam.roles.deleted': access('Role deleted', 'deleted the role {resource|of a member} in {group}'),
  'control.iam.access_request.created': access('Access requested', 'requested access to {group}'),
  'control.iam.access_request.answered': access('Access request answered', ({ approved }) =>
    approved === true
      ? 'approved the request of {access_request.email|a person} for access to {group}[ with the role {role_uid}]'
      : 'refused the request of {access_request.email|a person} for access to {group}',
  ),
  'control.iam.push_token.created': access(
    'Push token created',
    'created the push token {push_token.name|without a name} for {push_token.group|a group}[, valid until {push_token.expire_time}]',
  ),
  'control.iam.push_token.revoked': access(
    'Push token revoked',
    'revoked the push token {push_token.name|without a name}',
  ),
  'iam.external_group_role_mappings.created': access(
    'Group mapped to a role',
    `mapped the group {external_group_id} of {identity_provider_uid|an identity provider} to the role ${role}`,
  ),
  'iam.external_group_role_mappings.deleted': access(
    'Group mapping deleted',
    `deleted the mapping of the group {external_group_id|of a provider}[ to the role {role_uid}]`,
  ),
  'iam.external_group_role_mappings.deleted.batch': access(
    'Group mappings deleted',
    'deleted the mappings of the groups {external_group_role_mappings.external_group_id|of a provider}',
  ),

  'iam.identity_providers.created': integrations(
    'Identity provider added',
    'added the identity provider {resource|} in {group}',
  ),
  'iam.identity_providers.updated': integrations(
    'Identity provider changed',
    'changed the identity provider {resource|} in {group}',
  ),
  'iam.identity_providers.deleted': integrations(
    'Identity provider deleted',
    'deleted the identity provider {resource|} in {group}',
  ),
  'iam.identity_providers.scim_enabled.updated': integrations('SCIM switched on or off', ({ enabled }) =>
    enabled === true
      ? 'switched on SCIM for {identity_provider_uid|an identity provider}'
      : 'switched off SCIM for {identity_provider_uid|an identity provider}',
  ),
  'iam.identity_providers.scim_token.generated': integrations(
    'SCIM token created',
    'created a SCIM token for {identity_provider_uid|an identity provider}',
  ),
  'iam.identity_providers.scim_token.regenerated': integrations(
    'SCIM token replaced',
    'replaced the SCIM token of {identity_provider_uid|an identity provider}',
  ),
  'iam.identity_providers.scim_token.revoked': integrations(
    'SCIM token revoked',
    'revoked the SCIM token of {identity_provider_uid|an identity provider}',
  ),
  'control.iam.email_domain.created': integrations('Email domain added', 'added the email domain {domain} to {group}'),
  'control.iam.email_domain.verified': integrations('Email domain verified', 'verified the email domain {domain}'),
  'control.iam.email_domain.deleted': integrations(
    'Email domain deleted',
    'deleted the email domain {domain|} of {group}',
  ),
  'events.subscription.created': integrations('Webhook created', 'created the webhook {resource|} in {group}'),
  'events.subscription.updated': integrations('Webhook changed', ({ settings: changed, paused }) =>
    changed !== undefined
      ? 'replaced the signing secret of the webhook {resource|}'
      : paused === true
        ? 'changed the webhook {resource|}, which is paused'
        : 'changed the webhook {resource|}',
  ),
  'events.subscription.deleted': integrations('Webhook deleted', 'deleted the webhook {resource|} in {group}'),
  'control.registry.upstream.created': integrations(
    'Upstream added',
    'added the upstream {name|}[ ({url})] in {group}',
  ),
  'control.registry.upstream.updated': integrations(
    'Upstream changed',
    'changed the upstream {name|}[ ({url})] in {group}',
  ),
  'control.registry.upstream.deleted': integrations('Upstream deleted', 'deleted the upstream {name|} in {group}'),
  'control.registry.follow.updated': integrations(
    'Mirror changed',
    'set up {repo_uid|a repository} as a mirror[ of {path}]',
  ),
  'control.registry.follow.deleted': integrations('Mirror ended', 'ended the mirror of {repo_uid|a repository}'),

  'control.scanning.gate.created': policies(
    'Admission policy created',
    withMode('created the admission policy {name|} in {group}'),
  ),
  'control.scanning.gate.updated': policies(
    'Admission policy changed',
    withMode('changed the admission policy {name|} in {group}'),
  ),
  'control.scanning.gate.deleted': policies(
    'Admission policy deleted',
    'deleted the admission policy {name|} in {group}',
  ),
  'control.scanning.gate.exception.created': policies(
    'Admission exemption created',
    `exempted ${image} from admission policies${until}${reason}`,
  ),
  'control.scanning.gate.exception.revoked': policies(
    'Admission exemption revoked',
    `revoked the exemption of ${image} from admission policies`,
  ),
  'control.scanning.risk.accepted': policies(
    'Risk accepted',
    `ignored {vulnerability}[ of {package}] in {group}${until}${reason}`,
  ),
  'control.scanning.risk.expired': policies(
    'Accepted risk expired',
    'noted that {risk_acceptance.vulnerability} is not ignored any more in {group}',
  ),
  'control.scanning.risk.revoked': policies(
    'Accepted risk revoked',
    'stopped ignoring {vulnerability} in {group}[: “{revoke_reason}”]',
  ),
  'control.scanning.signer.trusted': policies(
    'Signer trusted',
    `trusted the signer {name|} in {group}${until}${reason}`,
  ),
  'control.scanning.signer.revoked': policies(
    'Signer revoked',
    'stopped trusting the signer {name|} in {group}[: “{revoke_reason}”]',
  ),
  'control.scanning.signer.expired': policies(
    'Signer expired',
    'noted that the signer {vex_signer.name} is not trusted any more in {group}',
  ),
  'control.registry.pull_rule.created': policies(
    'Cooldown policy created',
    withMode('created the cooldown policy {name|}[ of {min_age}] in {group}'),
  ),
  'control.registry.pull_rule.updated': policies(
    'Cooldown policy changed',
    withMode('changed the cooldown policy {name|}[ to {min_age}] in {group}'),
  ),
  'control.registry.pull_rule.deleted': policies(
    'Cooldown policy deleted',
    'deleted the cooldown policy {name|} in {group}',
  ),
  'control.registry.pull_rule.exception.created': policies(
    'Cooldown exemption created',
    `exempted ${image} from cooldown policies${until}${reason}`,
  ),
  'control.registry.pull_rule.exception.revoked': policies(
    'Cooldown exemption revoked',
    `revoked the exemption of ${image} from cooldown policies`,
  ),
  'control.registry.retention.rule.created': policies(
    'Retention policy created',
    withMode(`created the retention policy {name|}${tags} in {group}`),
  ),
  'control.registry.retention.rule.updated': policies(
    'Retention policy changed',
    withMode(`changed the retention policy {name|}${tags} in {group}`),
  ),
  'control.registry.retention.rule.deleted': policies(
    'Retention policy deleted',
    'deleted the retention policy {name|} in {group}',
  ),
  'control.registry.retention.tag_rule.created': policies(
    'Tag protection created',
    `created the tag protection {name|}${tags} in {group}`,
  ),
  'control.registry.retention.tag_rule.updated': policies(
    'Tag protection changed',
    `changed the tag protection {name|}${tags} in {group}`,
  ),
  'control.registry.retention.tag_rule.deleted': policies(
    'Tag protection deleted',
    'deleted the tag protection {name|} in {group}',
  ),
  'control.registry.tag.restored': settings(
    'Tag restored',
    `restored the tag {tag} of {repo_uid|a repository} to {digest}${reason}`,
  ),
  'control.registry.retention.hold.created': policies('Legal hold placed', `placed a legal hold on ${image}${reason}`),
  'control.registry.retention.hold.released': policies('Legal hold released', `released the legal hold on ${image}`),
  'control.registry.retention.quarantine.created': policies('Image quarantined', `quarantined ${image}${reason}`),
  'control.registry.retention.quarantine.released': policies(
    'Quarantine released',
    `released the quarantine of ${image}`,
  ),
  'control.registry.retention.planned': policies(
    'Deletion planned',
    'planned the deletion of {manifests|0} manifests in {group}',
  ),
  'control.registry.retention.deleted': policies(
    'Planned deletion done',
    'deleted {deleted|0} manifests in {group} by a retention plan',
  ),
  'control.registry.retention.promise.broken': policies(
    'Protected image deleted',
    `deleted {digest|images} in {repo_uid|a repository} despite a retention policy${reason}`,
  ),
  'control.registry.ledger.erased': settings('Tag history erased', 'erased the tag history of {paths|a repository}'),
  'control.registry.ledger.key_rotated': settings(
    'Signing key replaced',
    'replaced the signing key of the transparency log',
  ),
  'control.registry.ledger.resumed': settings('Transparency log resumed', 'resumed the transparency logs'),
}
