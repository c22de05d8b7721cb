// Texts of the setup page.
import { counted } from './format.ts'

export const setupWords = {
  setupTitle: 'Setup',
  setupIntro: 'Four steps make this server ready for your team. The check marks show the present state of the server.',
  setupDone: 'The setup is complete.',
  openOverview: 'Open the overview',
  stepsDone: (done: number, all: number) => `${done} of ${all} steps done`,
  stepDone: 'done',
  stepOpen: 'to do',
  organizationStep: 'Create an organization',
  organizationHint:
    'An organization owns folders, repositories and members. Its name is the first part of each image name.',
  organizationExists: (name: string, count: number) =>
    count === 1 ? `The server has the organization ${name}.` : `The server has ${counted(count, 'organization')}.`,
  organizationName: 'Name of the organization',
  signInStep: 'Let people sign in',
  signInHint:
    'People sign in with an OpenID Connect provider, such as Okta, Entra ID, Google or Keycloak. Then invite the first person.',
  signInConnected: (count: number) => `${counted(count, 'identity provider')} connected.`,
  signInOfServer: 'The settings of the server have a sign-in provider.',
  connectProvider: 'Connect an identity provider',
  invitePerson: 'Invite the first person',
  needsOrganization: 'Create an organization first.',
  pushStep: 'Push the first image',
  pushHint: 'Run these commands on the machine of the server. Replace alpine with the name of your image.',
  pushedTags: (count: number) => `${counted(count, 'tag')} pushed.`,
  pushCommands: 'Commands to push an image',
  dataStep: 'Turn on vulnerability data',
  dataOn: (hours: number) =>
    `The server downloads the data that its images need, every ${counted(hours, 'hour')}. It starts with the first image.`,
  dataRead: (count: number) => `Data of ${counted(count, 'data source')} is stored.`,
  dataFailed: (name: string, reason: string) => `The last download of ${name} failed: ${reason}`,
  dataOff:
    'The server downloads no vulnerability data. To turn it on, remove PINFOLD_VULNERABILITY_SYNC_HOURS or set it to 24, and restart the server. To download the data once, run:',
}
