//! Verbs of German, French, Spanish, Portuguese, Italian, Dutch and Russian with which an instruction begins, by the kind
//! of step that each makes: as one says it to somebody and as one writes it in a list. Where one is spelt as an English
//! word of another meaning it is left out. What the words mean for a sentence, `vocabulary` says.

/// Finding and fetching.
pub(super) const RETRIEVAL: &str = "finde|finden|suche|suchen|hole|holen|lade|herunterladen|lies|lesen|sammle|sammeln|\
     abrufen|cherche|chercher|cherchez|rechercher|trouve|trouver|trouvez|télécharge|télécharger|téléchargez|récupère|\
     récupérer|récupérez|lire|lisez|collecter|collectez|rassemble|rassembler|busca|buscar|encuentra|encontrar|descarga|\
     descargar|obtén|obtener|leer|recopila|recopilar|consulta|consultar|recuperar|busque|procure|procurar|encontre|\
     baixe|baixar|obtenha|obter|leia|colete|coletar|pesquise|pesquisar|cerca|cercare|trova|trovare|scarica|scaricare|\
     leggi|leggere|recupera|recuperare|raccogli|raccogliere|zoek|zoeken|vinden|haal|lezen|verzamel|verzamelen|найди|\
     найти|найдите|поищи|скачай|скачать|скачайте|загрузи|загрузить|прочитай|прочитать|прочти|собери|собрать|получи|\
     получить";

/// Looking into something.
pub(super) const ANALYSIS: &str = "analysiere|analysieren|vergleiche|vergleichen|prüfe|prüfen|überprüfe|überprüfen|\
     untersuche|untersuchen|bewerte|bewerten|verifiziere|verifizieren|recherchiere|recherchieren|evaluiere|evaluieren|\
     analyser|analysez|comparer|comparez|examiner|examinez|vérifie|vérifier|vérifiez|évalue|évaluer|évaluez|étudie|\
     étudier|étudiez|mesurer|mesurez|analiza|analizar|compara|comparar|investiga|investigar|revisa|revisar|evalúa|\
     evaluar|examina|examinar|verifica|verificar|comprueba|comprobar|mide|medir|estudia|estudiar|analise|analisar|\
     investigue|avalie|avaliar|verifique|meça|analizza|analizzare|confronta|confrontare|esamina|esaminare|verificare|\
     controlla|controllare|valuta|valutare|misura|misurare|analyseer|analyseren|vergelijk|vergelijken|controleer|\
     controleren|onderzoek|onderzoeken|проанализируй|проанализировать|анализировать|сравни|сравнить|сравните|проверь|\
     проверить|проверьте|исследуй|исследовать|изучи|изучить|оцени|оценить|измерь|измерить";

/// Changing the form of code.
pub(super) const REFACTOR: &str = "refaktoriere|refaktorieren|umbenennen|extrahiere|extrahieren|vereinfache|\
     vereinfachen|refactorise|refactoriser|refactorisez|renomme|renommer|renommez|extraire|simplifie|simplifier|\
     refactoriza|refactorizar|renombra|renombrar|extrae|extraer|simplifica|simplificar|refatore|refatorar|renomeie|\
     renomear|extraia|extrair|simplifique|rifattorizza|refactorizza|rinomina|rinominare|estrai|estrarre|semplifica|\
     semplificare|hernoem|hernoemen|vereenvoudig|vereenvoudigen|отрефактори|отрефакторить|рефакторить|переименуй|\
     переименовать|извлеки|извлечь|упрости|упростить";

/// Writing code.
pub(super) const CODE: &str = "implementiere|implementieren|füge|hinzufügen|ergänze|ergänzen|erstelle|erstellen|behebe|\
     beheben|repariere|reparieren|korrigiere|korrigieren|baue|bauen|einbauen|entwickle|entwickeln|programmiere|\
     programmieren|integriere|integrieren|anlegen|einrichten|aufsetzen|implémente|implémenter|implémentez|ajoute|\
     ajouter|ajoutez|crée|créer|créez|corrige|corriger|corrigez|développe|développer|développez|construis|construire|\
     intègre|intégrer|implementa|implementar|añade|añadir|agrega|agregar|crea|crear|corregir|arregla|arreglar|\
     desarrolla|desarrollar|construye|construir|integra|integrar|implemente|adicione|adicionar|crie|criar|corrija|\
     corrigir|conserte|consertar|desenvolva|desenvolver|construa|implementare|aggiungi|aggiungere|creare|correggi|\
     correggere|sviluppa|sviluppare|costruisci|costruire|integrare|implementeer|implementeren|toevoegen|bouw|bouwen|\
     herstel|herstellen|repareer|repareren|ontwikkel|ontwikkelen|реализуй|реализовать|реализуйте|добавь|добавить|\
     добавьте|создай|создать|создайте|исправь|исправить|исправьте|почини|починить|разработай|разработать|внедри|\
     внедрить";

/// Running something.
pub(super) const TOOL: &str = "starte|starten|neustarten|führe|ausführen|installiere|installieren|deploye|deployen|\
     veröffentliche|veröffentlichen|sende|senden|schicke|schicken|verschicke|verschicken|hochladen|ausrollen|\
     benachrichtige|benachrichtigen|lance|lancer|lancez|exécute|exécuter|exécutez|installez|déploie|déployer|déployez|\
     publie|publier|publiez|envoie|envoyer|envoyez|démarre|démarrer|redémarre|redémarrer|ejecuta|ejecutar|instala|\
     instalar|despliega|desplegar|publica|publicar|envía|enviar|lanza|lanzar|reinicia|reiniciar|sube|subir|executar|\
     rodar|instale|implante|implantar|publique|envie|reinicie|esegui|eseguire|installa|installare|pubblica|pubblicare|\
     invia|inviare|avvia|avviare|riavvia|riavviare|uitvoeren|installeer|installeren|publiceer|publiceren|verstuur|\
     versturen|запусти|запустить|запустите|выполни|выполнить|установи|установить|разверни|развернуть|задеплой|\
     задеплоить|опубликуй|опубликовать|отправь|отправить|отправьте|выложи|выложить|перезапусти|перезапустить";

/// Asking.
pub(super) const ASK: &str = "frage|fragen|kläre|klären|demande|demander|demandez|clarifier|pregunta|preguntar|aclara|\
     aclarar|pergunte|perguntar|chiedi|chiedere|vraag|vragen|спроси|спросить|уточни|уточнить";

/// Testing.
pub(super) const TEST: &str = "teste|testen|tester|testez|probar|testar|testa|testare|протестируй|протестировать|\
     тестировать";

/// What tests are called; after verbs of making and running them.
pub(super) const TESTS: &str = "unit-tests|unittest|unitaires|unitarias|unitarios|pruebas|testes|unitários|unitari|тесты|\
     тестов|юнит-тесты";

/// Verbs of other steps.
pub(super) const PLAIN: &str = "schreibe|schreiben|aktualisiere|aktualisieren|berechne|berechnen|dokumentiere|\
     dokumentieren|entferne|entfernen|lösche|löschen|erzeuge|erzeugen|übersetze|übersetzen|migriere|migrieren|\
     konfiguriere|konfigurieren|écris|écrire|écrivez|rédige|rédiger|mettre|mettez|calcule|calculer|supprime|supprimer|\
     nettoie|nettoyer|traduis|traduire|génère|générer|escribe|escribir|actualiza|actualizar|calcula|calcular|elimina|\
     eliminar|borra|borrar|limpia|limpiar|traduce|traducir|genera|generar|configura|configurar|escreva|escrever|\
     atualize|atualizar|remova|scrivi|scrivere|aggiorna|aggiornare|calcola|calcolare|rimuovi|rimuovere|pulisci|traduci|\
     schrijf|schrijven|bereken|berekenen|verwijder|verwijderen|напиши|написать|напишите|обнови|обновить|обновите|\
     посчитай|вычисли|удали|удалить|настрой|настроить|переведи|подготовь|подготовить";

/// The same, and those of running: their object can be tests.
pub(super) const TEST_MAKERS: &str = "schreibe|schreiben|starte|starten|führe|ausführen|ergänze|ergänzen|erstelle|\
     erstellen|écris|écrire|écrivez|ajoute|ajouter|ajoutez|lance|lancer|lancez|exécute|exécuter|exécutez|escribe|escribir|\
     añade|añadir|agrega|agregar|ejecuta|ejecutar|escreva|escrever|adicione|adicionar|execute|executar|rodar|scrivi|\
     scrivere|aggiungi|aggiungere|esegui|eseguire|schrijf|schrijven|напиши|написать|напишите|добавь|добавить|запусти|\
     запустить|запустите|выполни|выполнить";

/// Words that end the object of a verb.
pub(super) const PREPOSITIONS: &str = "für|von|zu|mit|aus|dafür|dazu|du|de|des|pour|avec|dans|sur|del|para|con|di|della|\
     per|da|dos|com|voor|для|на|из|с|к|в";
