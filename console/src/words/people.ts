// Texts of invitations, identity providers, group mappings and SCIM.
const invitations = {
  invites: 'Invitations',
  invitesHidden: 'You do not have permission to see the invitations here. Ask an owner of the organization.',
  noInvites: 'There are no open invitations.',
  forWhom: 'For',
  anybody: 'anyone who has the link',
  uses: 'Uses',
  once: 'once',
  often: 'several times',
  revokeInviteOf: (role: string, email: string) => `Revoke the invitation to ${role}${email && ` for ${email}`}`,
  revokeInviteText: 'The link and the code can no longer be used.',
}

const providers = {
  providers: 'Identity providers',
  providersHidden: 'You do not have permission to see the identity providers here. Ask an owner of the organization.',
  noProviders:
    'The organization has no identity provider of its own. Its members sign in with the providers in the server settings.',
  newProvider: 'New identity provider',
  issuer: 'Issuer URL',
  testConnection: 'Test connection',
  connected: 'The server can read the configuration of the identity provider. Members can sign in.',
  notConnected: 'Nobody can sign in with this identity provider now. The server tries again with each sign-in.',
  clientId: 'Client ID',
  clientSecret: 'Client secret',
  neverShown: 'Stored encrypted and never shown again.',
  secretStays: 'Leave empty to keep the stored secret. If you change the issuer, enter the secret again.',
  pkce: 'Use PKCE',
  scopes: 'Scopes in addition to openid',
  scopesHint: 'Example: email profile',
  groupsClaim: 'Claim with the groups of a user',
  groupsClaimHint: 'Leave empty if groups at the provider grant no roles.',
  defaultRole: 'Role at the first sign-in',
  callback: 'Redirect URI (register it at the provider)',
  deleteProviderOf: (name: string) => `Delete identity provider ${name}`,
  deleteProviderText: 'Nobody can sign in with this provider anymore, and the sessions of its users end.',
}

const emailDomains = {
  emailDomains: 'Email domains',
  noEmailDomains:
    'There are no email domains. With a verified domain, members sign in by entering their work email, without the name of the organization.',
  newEmailDomain: 'New email domain',
  createEmailDomain: 'Add domain',
  emailDomain: 'Domain',
  emailDomainHint: 'Example: acme.example',
  isVerified: 'verified',
  isNotVerified: 'not verified',
  verifyEmailDomainText:
    'Create a DNS record of the type “TXT” with this name and this value. It can take hours until the record is published.',
  copyRecordName: 'Copy the name of the record',
  copyRecordValue: 'Copy the value of the record',
  verifyEmailDomain: 'Verify domain',
  deleteEmailDomainOf: (domain: string) => `Delete email domain ${domain}`,
  deleteEmailDomainText: 'Members can still sign in by the name of the organization.',
}

const mappings = {
  newMapping: 'New group mapping',
  externalGroup: 'Group at the provider',
  externalGroupHint: 'Name or ID of the group, exactly as in the groups claim of the token.',
  mappingsOf: (provider: string) => `Group mappings of ${provider}`,
  noMappings: 'There are no group mappings, so groups at the provider grant no roles.',
  deleteMappingOf: (group: string) => `Delete the mapping of group ${group}`,
  deleteMappingText: 'Members of the group lose the role at their next sign-in.',
}

const scim = {
  scim: 'SCIM provisioning',
  scimOn: 'on',
  scimOff: 'off',
  turnOn: 'Turn on SCIM',
  turnOff: 'Turn off SCIM',
  firstScimToken: 'Create SCIM token',
  newScimToken: 'Replace SCIM token',
}

export const peopleWords = { ...invitations, ...providers, ...emailDomains, ...mappings, ...scim }
