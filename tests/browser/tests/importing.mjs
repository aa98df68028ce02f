// Importing a company's dirty file: columns, dry run, import, rejects, and the corrected file again.
import assert from "node:assert/strict";
import { describe } from "node:test";
import { download, heading, home, sees, settled } from "../harness/steps.mjs";
import { inBothModes } from "../harness/variants.mjs";

/** Semicolons, a Windows encoding, decimal commas, two emails in a cell, an email that is none, and markup. */
const CUSTOMERS = `Kundennr.;Vorname;Nachname;E-Mail;Telefon;Ort;Umsatz
0001;Anna;Müller;anna@example.com;030 1234567;Köln;1.234,50
0002;Jörg;Groß;jg@example.com;+43 1 5123456;Wien;17,00
0003;Eva;Weiß;eva@example.org, e2@example.org;0171 1234567;Köln;0,99
0004;Nora;Falsch;nora@@example.org;;Köln;12,00
0005;<script>globalThis.canary=1</script>;"Ra""nd";ida@example.com;;Köln;NULL
`;

const file = (name, content) => ({ name, mimeType: "text/csv", buffer: Buffer.from(content, "latin1") });

async function upload(page, scripts, tenant, content) {
  await page.goto(`${home(tenant)}/import`);
  await page.getByLabel("File", { exact: true }).setInputFiles(content);
  await page.getByRole("button", { name: "Upload" }).click();
  await settled(page, scripts, page.getByRole("heading", { name: "The first rows, as they are read" }));
}

/** The number beside a term, such as the new users. */
async function count(page, term) {
  const terms = page.getByRole("term").filter({ hasText: term });
  return Number(await terms.first().locator("xpath=following-sibling::dd[1]").innerText());
}

describe("imports", () => {
  inBothModes("a dirty file is read, checked, imported and corrected", async ({ page, api, tenant, check, scripts }) => {
    await api.create("Somebody", ["email:somebody@example.com"]);
    await upload(page, scripts, tenant, file("customers.csv", CUSTOMERS));
    await heading(page, "customers.csv");
    const sample = page.getByRole("region", { name: "The first rows" });
    await sample.getByText("Jörg Groß").waitFor();
    await sees(page, "Rows with errors: 1 of 5");
    assert.equal(await page.evaluate(() => globalThis.canary), undefined);
    await check(page);

    await page.getByLabel("Field of Kundennr.").selectOption({ label: "Attribute" });
    await page.getByLabel("Name for Kundennr.").fill("customer");
    await page.getByLabel("Field of Ort").selectOption({ label: "Ignore" });
    // The dry run has what was chosen above it.
    await page.getByRole("button", { name: "Make a dry run" }).click();
    await settled(page, scripts, page.getByRole("heading", { name: "What the import would do" }));
    assert.deepEqual([await count(page, "New users"), await count(page, "Rejected lines")], [4, 1]);
    assert.equal(await api.resolve("email:anna@example.com"), undefined, "the dry run has imported");
    await check(page);

    await page.getByRole("button", { name: "Import", exact: true }).click();
    await settled(page, scripts, page.getByRole("heading", { name: "Imported" }));
    const anna = await api.resolve("email:anna@example.com");
    assert.equal(anna.displayName, "Anna Müller");
    assert.equal(anna.attributes.customer.stringValue, "0001");
    assert.equal(anna.attributes.ort, undefined);
    assert.equal((await api.resolve("email:e2@example.org")).displayName, "Eva Weiß");
    assert.equal((await api.search("")).length, 5);

    const imported = page.getByRole("region", { name: "Imported" });
    const rejects = await download(page, imported.getByRole("link", { name: "Download rejects" }));
    assert.equal(rejects.trim().split("\n").length, 2, rejects);
    assert.match(rejects, /nora@@example\.org/);

    await upload(page, scripts, tenant, {
      name: "corrected.csv",
      mimeType: "text/csv",
      buffer: Buffer.from(rejects.replace("@@", "@")),
    });
    await page.getByRole("button", { name: "Make a dry run" }).click();
    await settled(page, scripts, page.getByRole("heading", { name: "What the import would do" }));
    await page.getByRole("button", { name: "Import", exact: true }).click();
    await settled(page, scripts, page.getByRole("heading", { name: "Imported" }));
    assert.equal((await api.resolve("email:nora@example.org")).displayName, "Nora Falsch");
  });

  inBothModes("a file that is no table says so", async ({ page, api, tenant, check, scripts }) => {
    await api.create("Somebody");
    await page.goto(`${home(tenant)}/import`);
    await check(page);
    const zip = Buffer.from("504b03041400060008000000210000000000", "hex");
    await page.getByLabel("File", { exact: true }).setInputFiles({ name: "list.xlsx", mimeType: "application/zip", buffer: zip });
    await page.getByRole("button", { name: "Upload" }).click();
    await settled(page, scripts, page.getByRole("alert"));
    await check(page);
  });
});
