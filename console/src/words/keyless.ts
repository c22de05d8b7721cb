// Texts of the setup of CI jobs that sign in with a token of their platform.
export const keylessWords = {
  keylessHidden:
    'You do not have permission to set up keyless CI here, because it creates an identity and grants it a role. Ask an owner of the organization.',
  keylessIntro:
    'A CI job signs in with an OIDC token of its platform, so it needs no password. Enter the repository of the job, or a token of the job:',
  repositoryOrToken: 'Repository URL or OIDC token',
  tokenHint:
    'Example: https://github.com/acme/app. A token is decoded in this browser. Its claims are sent to the server, its signature is not.',
  preview: 'Preview',
  noPlan:
    'No preview, because this is not the URL of a repository at GitHub or GitLab, and not an OIDC token. Enter a URL such as https://github.com/acme/app.',
  requiredClaims: 'Required claims of the token',
  claim: 'Claim',
  claims: { issuer: 'iss', subject: 'sub', subjectPattern: 'sub (pattern)' } as Record<string, string>,
  requiredValue: 'Required value',
  tokenValue: 'Value in the token',
  matches: 'matches',
  differs: 'does not match',
  recyclable:
    'The name of an owner or a repository can later belong to somebody else. To require their permanent IDs too, enter a token of the job.',
  dryRun: 'Dry run with the claims of the token',
  wouldMatch: 'With a valid signature, this token would be accepted.',
  wouldNotMatch: 'This token would be rejected.',
  identityCreated: 'The identity was created. Add these lines to the configuration of the job:',
  copyWorkflow: 'Copy the lines',
}
