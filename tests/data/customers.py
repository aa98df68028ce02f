"""Writes a company's list of customers as a spreadsheet program exports it, and next month's list.

    python3 tests/data/customers.py [--language de|fr|es] [--rows 1000]

writes customers.csv and next-month.csv into the present folder: semicolons, the encoding that such
programs use, headers of the language, five countries, decimal commas, two emails in every tenth
cell, 3 % of rows that are wrong and 2 % with the email of an earlier row. Next month, 1 % of the
rows have another city and revenue, and some customers are new.
"""

import argparse

COUNTRIES = {
    "de": ["Deutschland", "Österreich", "Schweiz", "Frankreich", "Spanien"],
    "fr": ["Allemagne", "Autriche", "Suisse", "France", "Espagne"],
    "es": ["Alemania", "Austria", "Suiza", "Francia", "España"],
}
HEADERS = {
    "de": "Kundennr.;Vorname;Nachname;E-Mail;Telefon;Land;Ort;Umsatz;Kunde seit;Newsletter",
    "fr": "N° client;Prénom;Nom;Courriel;Portable;Pays;Ville;Chiffre;Depuis;Infos",
    "es": "Cliente;Nombre;Apellidos;Correo electrónico;Móvil;País;Ciudad;Ventas;Desde;Boletín",
}
ANSWERS = {"de": ["ja", "nein"], "fr": ["oui", "non"], "es": ["sí", "no"]}
ENCODINGS = {"de": "windows-1252", "fr": "utf-16", "es": "utf-8"}
FIRST_NAMES = ["José", "Zoë", "Jürgen", "María", "Łukasz"]
LAST_NAMES = ["Müller", "NULL", "Peña", "Weiß", "Dupont", "Rossi", "O’Neill"]
CITIES = ["Köln", "Wien", "Zürich", "Lyon", "Málaga"]


def email(n):
    if n % 100 < 2:
        return f"nobody@@{n}.example.com"
    if n % 100 == 2:
        return "N/A@"
    if n % 100 > 97:
        return f"Person{n - 50}@Example.com"
    if n % 10 == 5:
        return f"person{n}@example.com, p.{n}@example.org"
    return f"person{n}@example.com"


def phone(n):
    digits = f"{n:06}"
    return [
        f"030 2{digits}",
        f"01 5{digits}",
        f"044 6{digits}",
        f"06 12 {digits[:2]} {digits[2:4]} {digits[4:]}",
        f"612 {digits}",
    ][n % 5]


def rows(language, count, changes):
    yield HEADERS[language]
    for n in range(count):
        first, last = FIRST_NAMES[n % 5], LAST_NAMES[n % 7]
        if n % 50 > 47:
            # Of two rows with one email, either is rejected: they count alike.
            last = "Sommer"
        if language == "de":
            first = first.replace("Łukasz", "Lukasz")
        city, revenue = CITIES[n % 5], f"{n % 7}.{n % 1000:03},50"
        if changes and n % 100 == 7:
            city, revenue = CITIES[(n + 1) % 5], "9.999,00"
        country, answer = COUNTRIES[language][n % 5], ANSWERS[language][n % 2]
        cells = [f"{n:06}", first, last, email(n), phone(n), country, city, revenue]
        yield ";".join([*cells, f"{1 + n % 28:02}.12.2021", answer])
    yield ";; ;;;;;;;"


def main():
    formatter = argparse.RawTextHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=formatter)
    parser.add_argument("--language", choices=HEADERS, default="de")
    parser.add_argument("--rows", type=int, default=1000)
    options = parser.parse_args()
    present, later = options.rows, options.rows + options.rows // 20
    lists = [("customers.csv", present, False), ("next-month.csv", later, True)]
    for name, count, changes in lists:
        text = "\r\n".join(rows(options.language, count, changes))
        with open(name, "wb") as file:
            file.write(text.encode(ENCODINGS[options.language]))


if __name__ == "__main__":
    main()
