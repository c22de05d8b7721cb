// Texts of accepted risks and trusted VEX signers.
export const riskWords = {
  risks: 'Accepted risks',
  risksText:
    'Vulnerability reports and admission policies ignore an accepted risk in its scope until it expires. Events that were already sent do not change.',
  noRisks: 'There are no accepted risks.',
  newRisk: 'New accepted risk',
  acceptRisk: 'Accept risk',
  addedBy: 'Added by',
  limitedTo: 'Limited to',
  allImages: 'all images',
  onlyInDigest: 'Only in the image with this digest',
  onlyInPackage: 'Only in this package',
  packageHint: 'A package URL, with or without a version.',
  atMost366Days: 'At most 366 days from now.',
  revokeRiskText: 'After the revocation, reports and admission policies count the vulnerability again.',
  ended: 'ended',
  signers: 'Trusted VEX signers',
  noSigners: 'There are no trusted signers. VEX statements are shown, but no vulnerability is ignored because of them.',
  newSigner: 'New trusted signer',
  signerHint: 'Vulnerabilities that are ignored because of this signer show this name.',
  key: 'Key',
  publicKey: 'Public key (PEM)',
  publicKeyHint:
    'Example: the content of cosign.pub. If a VEX document with this signature says not affected or fixed, the vulnerability is ignored here.',
  privateKey:
    'This is a private key. It was not sent to the server. Enter the public key instead, and keep the private key secret.',
  trustSigner: 'Trust signer',
  revokeTrustText: 'Vulnerabilities that are ignored because of this signer count again immediately.',
}
