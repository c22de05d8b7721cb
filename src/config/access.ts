// Settings of sign-in, organizations and terms of service, and of tokens and cloud accounts.
import { baseUrl, onOff, setting, whole } from './basics.ts'
import { algorithms, documents, methodNames, peopleProviders } from './values.ts'

export const signInSettings = {
  oidcProviders: setting({
    env: 'PINFOLD_OIDC_PROVIDERS',
    formerly: 'PINFOLD_PEOPLE_ISSUERS',
    parse: peopleProviders,
    default: '',
    doc: 'JSON array of the OpenID Connect providers of your users: `[{"issuer": "https://…", "audience": "CLIENT_ID"}]`.',
    note: '`audience` is the client ID that tokens of the provider are issued for. With a `label`, the sign-in page offers the provider. Then `name` is its name in sign-in URLs (made from the label by default), and `secretFile` the file with the client secret. `scopes` are requested in addition to `openid`, such as `email profile`. See [single sign-on](guides/add-single-sign-on.md).',
  }),
  allowSelfRegistration: setting({
    env: 'PINFOLD_ALLOW_SELF_REGISTRATION',
    formerly: 'PINFOLD_OPEN_SIGN_IN',
    parse: onOff,
    default: 'off',
    doc: '`on` creates an account for every user who signs in with a provider of `PINFOLD_OIDC_PROVIDERS`.',
    note: 'With `off` a new user needs an invitation.',
  }),
  deviceSignIn: setting({
    env: 'PINFOLD_DEVICE_SIGN_IN',
    parse: onOff,
    default: 'on',
    doc: '`on` offers the OAuth device flow: a program shows a code, and its user enters the code in a browser.',
  }),
  allowOrganizationCreation: setting({
    env: 'PINFOLD_ALLOW_ORGANIZATION_CREATION',
    formerly: 'PINFOLD_OPEN_ORGANIZATIONS',
    parse: onOff,
    default: 'off',
    doc: '`on` allows every signed-in user to create organizations; with `off` only the operator can.',
  }),
  termsDocuments: setting({
    env: 'PINFOLD_TERMS_DOCUMENTS',
    parse: documents,
    default: '',
    doc: 'JSON array of the terms that organizations can accept: `[{"id": "terms-of-service.v1", "label": "…", "url": "https://…"}]`.',
  }),
  termsMethods: setting({
    env: 'PINFOLD_TERMS_METHODS',
    parse: methodNames,
    default: '',
    doc: 'API methods that are refused until the organization has accepted all terms: full names, separated by commas.',
    note: 'Example: `pinfold.platform.registry.v2.ReposService/CreateRepo`. The same action in another version of the API or by a push is refused too.',
  }),
}

export const tokenSettings = {
  signingAlgorithms: setting({
    env: 'PINFOLD_SIGNING_ALGORITHMS',
    parse: algorithms,
    default: 'ES256',
    doc: 'Algorithms that sign tokens: `ES256`, `RS256`, or both, separated by a comma.',
    note: 'The server has keys for each. The first algorithm signs tokens of the server and deliveries of events. Tokens for clouds use RS256 if it is listed. Before you list RS256 first, check that the receivers of events accept it.',
  }),
  keyRotationDays: setting({
    env: 'PINFOLD_KEY_ROTATION_DAYS',
    parse: whole(3, 3650),
    default: '90',
    doc: 'Days after which the server signs tokens with a new key.',
    note: 'A new key is published one day before, and the old key for two days after.',
  }),
  awsStsUrl: setting({
    env: 'PINFOLD_AWS_STS_URL',
    parse: baseUrl,
    default: 'https://sts.amazonaws.com',
    doc: 'URL of the AWS Security Token Service, which verifies identities of AWS and checks account associations.',
  }),
  googleStsUrl: setting({
    env: 'PINFOLD_GOOGLE_STS_URL',
    parse: baseUrl,
    default: 'https://sts.googleapis.com',
    doc: 'URL of the Google Cloud Security Token Service, for checks of account associations.',
  }),
  googleIamUrl: setting({
    env: 'PINFOLD_GOOGLE_IAM_URL',
    parse: baseUrl,
    default: 'https://iamcredentials.googleapis.com',
    doc: 'URL of the Google Cloud service for credentials of service accounts, for checks of account associations.',
  }),
  azureLoginUrl: setting({
    env: 'PINFOLD_AZURE_LOGIN_URL',
    parse: baseUrl,
    default: 'https://login.microsoftonline.com',
    doc: 'URL at which applications sign in to Azure, for checks of account associations.',
  }),
}
