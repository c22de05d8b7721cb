// Texts of members: people, service accounts, their roles, and invitations by link.
import { counted, numbers } from './format.ts'

const lists = {
  people: 'People',
  serviceAccounts: 'Service accounts',
  nameOrEmail: 'Name or email',
  roles: 'Roles',
  lastSeen: 'Last used',
  never: 'never',
  notAccepted: 'Person who has not accepted yet',
  notAcceptedHint: 'The name is shown once the person has accepted a role in the organization.',
  roleIn: (role: string, group: string) => `${role} in ${group}`,
  roleFrom: (role: string, group: string) => `${role}, inherited from ${group}`,
  noRole: 'no role',
  noPeople: 'No people have a role here yet.',
  noServiceAccounts:
    'There are no service accounts yet. A service account lets a CI job or a cluster sign in without a person.',
  noMemberFound: (text: string) => `No member has “${text}” in the name or email address.`,
  showAllMembers: 'Show all members',
  cutMembers: (most: number) =>
    `Only the members of the first ${numbers(most)} roles are shown. Search for a name to find others.`,
  newServiceAccount: 'New service account',
}

const changes = {
  addMember: 'Add member',
  addTo: (group: string) => `Add a member to ${group}`,
  member: 'Person or service account',
  memberHint: 'People and service accounts that the organization knows. Invite other people by email.',
  scopeOfRole: 'In',
  moreRoles: (count: number) => `${counted(count, 'more role')}`,
  add: 'Add member',
  chooseMember: 'Choose a person or a service account.',
  changeRoles: 'Change roles',
  changeRolesOf: (who: string) => `Change the roles of ${who}`,
  roleAt: (group: string) => `Role in ${group}`,
  withoutRole: 'No role (remove)',
  saveRoles: 'Save roles',
  inheritedStay: 'Roles from groups above, and from groups of the identity provider, are not changed here.',
  remove: 'Remove',
  removeOf: (who: string) => `Remove ${who}`,
  removeTitle: (who: string, group: string) => `Remove ${who} from ${group}?`,
  removeEffect: (roles: string) => `Removes these roles: ${roles}. Access ends within one second.`,
  removeTokens: (count: number) =>
    count === 0 ? '' : `${counted(count, 'push token')} of this member can no longer be used here.`,
  removeUndo: 'To undo this, add the member again.',
  removeMember: 'Remove member',
  deleteAccount: 'Delete service account',
  deleteAccountEffect: 'Its tokens stop working within one second. This cannot be undone.',
  memberAdded: (who: string) => `Added ${who}`,
  rolesSaved: (who: string) => `Changed the roles of ${who}`,
  memberRemoved: (who: string) => `Removed ${who}`,
}

const invitations = {
  inviteMembers: 'Invite members',
  inviteTo: (group: string) => `Invite to ${group}`,
  emails: 'Email addresses',
  emailsHint:
    'One per line. Each person gets a link that works once. Without an address, anyone who has the link can use it.',
  badEmail: (text: string) => `“${text}” is not an email address.`,
  expiresIn: 'Link expires',
  days: { '1': 'in 1 day', '7': 'in 7 days', '30': 'in 30 days' } as Record<string, string>,
  inviteText: 'Each person accepts the role when they sign in. Until then they have no access.',
  createLinks: 'Create invitation links',
  linksOnce: 'Send these links. Copy them now. They are not shown again.',
  linkFor: (email: string) => (email === '' ? 'Anyone who has this link' : email),
  copyLinkFor: (email: string) => `Copy the link for ${email || 'anyone'}`,
}

const requests = {
  accessRequests: 'Access requests',
  approveRequest: 'Approve',
  approveOf: (who: string) => `Approve the request of ${who}`,
  refuseRequest: 'Refuse',
  refuseOf: (who: string) => `Refuse the request of ${who}`,
  requestedAt: 'Requested',
}

const groups = {
  noProvidersForGroups:
    'The organization has no identity provider of its own, so no groups can be mapped. Add one in “Invitations and sign-in”.',
  groupsText:
    'A group of the identity provider can grant a role to all of its members. The role ends when a person leaves the group.',
}

export const memberWords = { ...lists, ...changes, ...invitations, ...requests, ...groups }
