// Texts of invitations, identity providers, group mappings and SCIM.
const invitations = {
  invites: 'Invitations',
  invitesHidden: 'You do not have permission to see the invitations here. Ask an owner of the organization.',
  noInvites: 'There are no open invitations.',
  newInvite: 'Invite a person',
  createInvite: 'Create invitation',
  forWhom: 'For',
  anybody: 'anyone who has the code',
  uses: 'Uses',
  once: 'once',
  often: 'several times',
  onlyFor: 'Only for this verified email address',
  days: 'Days until the invitation expires',
  onlyOnce: 'Single use',
  inviteOnce: (page: string) =>
    `Send this code to the person whom you invite. The person enters it at ${page}. Copy the code now. It is not shown again:`,
  copyCode: 'Copy the code',
  revokeInviteOf: (role: string, email: string) => `Revoke the invitation to ${role}${email && ` for ${email}`}`,
  revokeInviteText: 'The code can no longer be used.',
}

const providers = {
  providers: 'Identity providers',
  providersHidden: 'You do not have permission to see the identity providers here. Ask an owner of the organization.',
  noProviders:
    'The organization has no identity provider of its own. Its members sign in with the providers in the server settings.',
  newProvider: 'New identity provider',
  issuer: 'Issuer URL',
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

export const people = { ...invitations, ...providers, ...mappings, ...scim }
