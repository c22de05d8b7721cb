// Texts of organizations and folders: their lists, tabs and settings.
import { counted } from './format.ts'

export const groupWords = {
  content: 'Folders and repositories',
  partOfGroupName: 'Part of the name',
  noneFoundInGroup: (text: string) => `No folder or repository here has “${text}” in its name.`,
  clearFilter: 'Clear the filter',
  openFolder: (name: string) => `Open ${name}`,
  closeFolder: (name: string) => `Close ${name}`,
  repoCount: (count: number) => counted(count, 'repository', 'repositories'),
  newestTag: 'Newest tag',
  ofNewestTag: 'Vulnerabilities and size are those of the newest tag of each repository.',
  moreFolders: 'Show more folders',
  noRepos: 'There are no repositories here yet. To create one, push an image:',
  settingsHidden: 'You do not have permission to change these settings. Ask an owner of the organization.',
  deleteGroup: 'Delete group',
  deleteGroupOf: (name: string) => `Delete group ${name}`,
  deleteGroupText: 'The role bindings and invitations of the group are deleted too. This cannot be undone.',
  groupNotEmpty: 'This group cannot be deleted, because it is not empty. Delete its content first:',
  insideGroup: {
    groups: 'Folders',
    repos: 'Repositories',
    roles: 'Custom roles',
    identities: 'Identities',
    identityProviders: 'Identity providers',
    subscriptions: 'Webhooks',
    roleBindings: 'Role bindings',
    groupInvites: 'Invitations',
  },
}
