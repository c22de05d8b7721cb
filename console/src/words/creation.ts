// Texts for the creation of organizations, folders, repositories and custom roles.
import { counted } from './format.ts'

const places = {
  newOrganization: 'Create organization',
  newFolder: 'New folder',
  newRepository: 'New repository',
  submitFolder: 'Create folder',
  createRepository: 'Create repository',
  orgNameHint:
    'The first part of the path of each image, such as acme in acme/app. Lowercase letters, digits and “._-”.',
  folderHint: 'A part of the path of images, such as team in acme/team/app. Lowercase letters, digits and “._-”.',
  repositoryHint: 'The last part of the path of its images, such as app in acme/app. It cannot be changed later.',
  created: (name: string) => `Created ${name}`,
}

const roles = {
  customRole: 'custom',
  builtInRole: 'built-in',
  capabilityCount: (count: number) => counted(count, 'permission'),
  newRole: 'New role',
  createRole: 'Create role',
  saveRole: 'Save role',
  editRole: (name: string) => `Edit role ${name}`,
  deleteRole: (name: string) => `Delete role ${name}`,
  deleteRoleText: 'A role can be deleted once no member, invitation or identity provider uses it.',
  roleName: 'Name',
  roleHint: 'Lowercase letters, digits, spaces and “._-”.',
  likeRole: 'Start with the permissions of',
  permissionsOf: (resource: string) => `Permissions: ${resource}`,
  otherPermissions: (count: number) =>
    `The role also has ${counted(count, 'permission')} that this page does not list. They stay. To see them, run: pinfold roles describe`,
  noPermission: 'Choose at least one permission.',
}

export const creationWords = { ...places, ...roles }
